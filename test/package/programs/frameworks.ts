// What a user of a framework writes: the framework's own types must take what serve returns.

import express from 'express'
import { fastify } from 'fastify'
import { createReceiver } from 'hookline'
import { serve as serveExpress } from 'hookline/express'
import { serve as serveFastify } from 'hookline/fastify'
import { serve as serveKoa } from 'hookline/koa'
import Koa from 'koa'

const receiver = createReceiver({ secret: 'secret' })

export const expressApp = express()
expressApp.post('/webhooks', serveExpress(receiver))
expressApp.use('/webhooks', serveExpress(receiver, { path: '/' }))

export const koaApp = new Koa()
koaApp.use(serveKoa(receiver, { path: '/webhooks' }))

export const fastifyApp = fastify()
fastifyApp.register(serveFastify(receiver), { path: '/webhooks' })
fastifyApp.register(serveFastify(receiver), { prefix: '/hooks' })
