import router from '@adonisjs/core/services/router'
import server from '@adonisjs/core/services/server'

server.use([() => import('../app/middleware/webhooks_middleware.js')])
router.use([() => import('@adonisjs/core/bodyparser_middleware')])
