import { setTimeout } from 'node:timers/promises'
import { definePlugin } from '@svc/core'
import { Tools } from '@svc/core/contracts'

const MS = { type: 'integer', minimum: 0, description: 'Milliseconds.' }

/** A tool that takes its time, so that there is something to be aborted. */
export default definePlugin({
  setup(scope) {
    scope.add(Tools, 'wait', {
      description: 'Waits for so many milliseconds.',
      category: 'time',
      effects: ['read'],
      parameters: { type: 'object', properties: { ms: MS }, required: ['ms'], additionalProperties: false },
      async call({ ms }, { signal }) {
        signal.throwIfAborted()
        if (!(Number(ms) >= 0) || ms === 13) throw new Error('so many milliseconds are bad luck')
        await setTimeout(Number(ms), undefined, { signal })
        return { content: [{ type: 'text', text: `waited ${Number(ms)} ms` }] }
      },
    })
  },
})
