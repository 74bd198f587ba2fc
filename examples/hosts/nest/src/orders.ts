import { Injectable } from '@nestjs/common'

@Injectable()
export class Orders {
  complete(userId: string | null | undefined) {
    console.log('order of', { userId })
  }
}
