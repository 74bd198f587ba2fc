import 'reflect-metadata'
import { type MiddlewareConsumer, Module, type NestModule } from '@nestjs/common'
import { NestFactory } from '@nestjs/core'
import { serve } from 'hookline/express'
import { Orders } from './orders.js'
import { Webhooks } from './webhooks.js'

@Module({ providers: [Orders, Webhooks] })
class AppModule implements NestModule {
  constructor(private readonly webhooks: Webhooks) {}

  configure(consumer: MiddlewareConsumer) {
    consumer.apply(serve(this.webhooks.receiver)).forRoutes('webhooks')
  }
}

const app = await NestFactory.create(AppModule, { bodyParser: false })
app.enableShutdownHooks()
await app.listen(process.env.PORT ?? 3000)
