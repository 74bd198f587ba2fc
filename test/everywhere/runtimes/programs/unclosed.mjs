// Records a call and ends without closing the client.

import { createClient } from 'hookline/client'

createClient('write-key', { endpoint: process.argv[2] }).track({ userId: 'user-1', event: 'Order Completed' })
