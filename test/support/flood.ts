import { definePlugin } from '@svc/core'
import { Providers, Routes } from '@svc/core/contracts'

const PIECE = 'all work and no play '.repeat(50)

/** A provider that never ends its answer, and a route that tells how much was taken of it and how many answers are open. */
export default definePlugin({
  setup(scope) {
    const stats = { taken: 0, open: 0 }
    scope.add(Providers, 'flood', {
      features: { tool_calling: false, streaming: true, vision: false },
      models: async () => ({ models: [{ id: 'endless' }], open: false }),
      countTokens: async () => 1,
      async *chat(_request, { signal }) {
        stats.open++
        try {
          for (; !signal.aborted; stats.taken += PIECE.length) yield { type: 'text', text: PIECE }
        } finally {
          stats.open--
        }
      },
      async probe() {},
    })
    scope.add(Routes, 'flood', {
      method: 'GET',
      path: '/flood',
      summary: 'The flood',
      handle: async () => ({ body: { ...stats } }),
    })
  },
})
