import 'reflect-metadata'
import { Module } from '@nestjs/common'
import { NestFactory } from '@nestjs/core'
import { serve } from 'hookline/express'
import { Orders } from './orders.js'
import { Webhooks } from './webhooks.js'

@Module({ providers: [Orders, Webhooks] })
class AppModule {}

const app = await NestFactory.create(AppModule)
app.use('/webhooks', serve(app.get(Webhooks).receiver)) // Before the body parser, which `listen` mounts.
app.enableShutdownHooks()
await app.listen(process.env.PORT ?? 3000)
