import router from '@adonisjs/core/services/router'

router.post('/orders', ({ request }) => request.body())
