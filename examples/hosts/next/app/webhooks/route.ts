import { serve } from 'hookline/fetch'
import { receiver } from '../../hooks'

export const POST = serve(receiver)
