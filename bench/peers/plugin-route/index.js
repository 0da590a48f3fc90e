// A route with the schema and the answer of the koa application beside it.
import { definePlugin } from '@svc/core'
import { Routes } from '@svc/core/contracts'
import { replyTo } from '../reply.js'
import { turn } from '../turn-schema.js'

export default definePlugin({
  setup(scope) {
    scope.add(Routes, 'bench_route', {
      method: 'POST',
      path: '/bench/route',
      summary: 'Answers like a chat, and does nothing.',
      scope: 'chat',
      body: turn,
      handle: async ({ body }) => ({ body: replyTo(body.message) }),
    })
  },
})
