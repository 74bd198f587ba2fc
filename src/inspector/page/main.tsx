/** The page of the inspector. */

import { render } from 'preact'
import './page.css'

render(<h1>Hookline inspector</h1>, document.querySelector('#page') as Element)
