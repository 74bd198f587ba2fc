import { serve } from 'hookline/fetch'
import { receiver } from '$lib/receiver'
import type { RequestHandler } from './$types'

const webhook = serve(receiver)

export const POST: RequestHandler = ({ request }) => webhook(request)
