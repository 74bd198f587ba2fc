/** Sets the size of random inputs: as long as their `maxLength`. By default, fast-check stops 10 elements above `minLength`. */

import fc from 'fast-check'

fc.configureGlobal({ defaultSizeToMaxWhenMaxSpecified: true })
