// A typical koa application: router, body parser, ajv, silent log.
import { bodyParser } from '@koa/bodyparser'
import { Router } from '@koa/router'
import { Ajv } from 'ajv'
import Koa from 'koa'
import { pino } from 'pino'
import { turn } from './turn-schema.js'

const validate = new Ajv().compile(turn)

export function serve(port, answer) {
  const log = pino({ level: 'silent' })
  const router = new Router()
  router.get('/health', ctx => void (ctx.body = { status: 'healthy' }))
  router.post('/api/v1/chat', async ctx => {
    const { body } = ctx.request
    if (!validate(body))
      return void Object.assign(ctx, { status: 400, body: { success: false, error: validate.errors[0].message } })
    ctx.body = await answer(body.message)
  })
  const app = new Koa()
  app.use(async (ctx, next) => {
    const began = performance.now()
    await next()
    log.info({ method: ctx.method, path: ctx.path, status: ctx.status, ms: performance.now() - began }, 'request')
  })
  app.use(bodyParser({ enableTypes: ['json'] }))
  app.use(router.routes())
  app.listen(port, '127.0.0.1')
}
