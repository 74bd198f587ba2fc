import 'reflect-metadata'
import { Module } from '@nestjs/common'
import { NestFactory } from '@nestjs/core'
import { FastifyAdapter, type NestFastifyApplication } from '@nestjs/platform-fastify'
import { serve } from 'hookline/fastify'
import { Orders } from './orders.js'
import { Webhooks } from './webhooks.js'

@Module({ providers: [Orders, Webhooks] })
class AppModule {}

const app = await NestFactory.create<NestFastifyApplication>(AppModule, new FastifyAdapter())
await app.register(serve(app.get(Webhooks).receiver), { path: '/webhooks' })
app.enableShutdownHooks()
await app.listen(process.env.PORT ?? 3000)
