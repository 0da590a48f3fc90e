import { serve } from './koa-app.js'
import { replyTo } from './reply.js'

serve(Number(process.argv[2]), replyTo)
