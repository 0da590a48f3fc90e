import { definePlugin } from '@svc/core'
import { type RouteReply, Routes } from '@svc/core/contracts'

const WRONG: Readonly<Record<string, unknown>> = {
  nothing: undefined,
  text: 'hello',
  status: { status: 9, text: 'a' },
  header: { text: 'a', headers: { 'x-a': 'a\r\nx-b: b' } },
}

export default definePlugin({
  setup(scope) {
    for (const [name, answer] of Object.entries(WRONG))
      scope.add(Routes, `wrong-${name}`, {
        method: 'GET',
        path: `/wrong/${name}`,
        summary: 'Answers in a wrong shape',
        handle: async () => answer as RouteReply,
      })
    scope.add(Routes, 'wrong-stream', {
      method: 'GET',
      path: '/wrong/stream',
      summary: 'Streams in a wrong shape',
      async *stream() {
        yield { token: 'a' } as unknown as string
      },
    })
  },
})
