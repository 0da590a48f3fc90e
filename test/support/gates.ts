import { appendFileSync } from 'node:fs'
import { join } from 'node:path'
import { definePlugin, svcHome } from '@svc/core'
import { Routes, type Tool, Tools } from '@svc/core/contracts'

/** Each run of `gate` is a line of this file in the home. */
export const RUNS = 'runs.log'

const tool = (more: Partial<Tool>): Tool => ({
  description: 'For turns that wait',
  category: 'text',
  effects: ['read'],
  parameters: { type: 'object', properties: { n: { type: 'integer' } }, additionalProperties: false },
  call: async () => ({ content: [{ type: 'text', text: 'done' }] }),
  ...more,
})

/** Tools that wait for a person, for the signal, or for the content of a form; and a route that tells the worker. */
export default definePlugin({
  setup(scope) {
    const gate = tool({
      asks: true,
      async call({ n = 0 }) {
        const name = `gate ${Number(n)}`
        appendFileSync(join(svcHome(), RUNS), `${name}\n`)
        return { content: [{ type: 'text', text: `${name} is open` }] }
      },
    })
    scope.add(Tools, 'gate', gate)
    scope.add(
      Tools,
      'idle',
      tool({
        async call(_args, { signal }) {
          appendFileSync(join(svcHome(), RUNS), 'idle\n')
          await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
          return { content: [] }
        },
      })
    )
    scope.add(
      Tools,
      'fill',
      tool({
        async *run(_args, { answers }) {
          const requestedSchema = { type: 'object', properties: { name: { type: 'string' } } }
          const name = { method: 'elicitation/create' as const, params: { message: 'Name?', requestedSchema } }
          if (answers) yield { type: 'result', result: { content: [{ type: 'text', text: 'filled' }] } }
          else yield { type: 'input', requests: { name } }
        },
      })
    )
    scope.add(Routes, 'pid', {
      method: 'GET',
      path: '/pid',
      summary: 'Which worker answers',
      handle: async () => ({ text: String(process.pid) }),
    })
  },
})
