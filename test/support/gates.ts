import { appendFileSync } from 'node:fs'
import { join } from 'node:path'
import { definePlugin, svcHome } from '@svc/core'
import { Routes, type Tool, type ToolStep, Tools } from '@svc/core/contracts'

/** Each run of a tool is a line of this file in the home. */
export const RUNS = 'runs.log'

const tool = (more: Partial<Tool>): Tool => ({
  description: 'For turns that wait',
  category: 'text',
  effects: ['read'],
  parameters: { type: 'object', properties: { n: { type: 'integer' } }, additionalProperties: false },
  call: async () => ({ content: [{ type: 'text', text: 'done' }] }),
  ...more,
})

/** Tools that wait for a person, for the signal, or for the content of forms; and a route that tells the worker. */
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
    const form = (message: string, field: string) => {
      const requestedSchema = { type: 'object', properties: { [field]: { type: 'string', minLength: 1 } }, required: [field] }
      return { method: 'elicitation/create' as const, params: { message, requestedSchema } }
    }
    const fill = tool({
      async *run({ n = 0 }, { answers, state }): AsyncGenerator<ToolStep> {
        appendFileSync(join(svcHome(), RUNS), `fill ${answers ? `${state} ${JSON.stringify(answers)}` : 'begins'}\n`)
        if (!answers) yield { type: 'input', requests: { a: form('Name?', 'name'), b: form('City?', 'city') }, state: 'first' }
        else if (n === 2 && state === 'first')
          yield { type: 'input', requests: { c: form('Street?', 'street') }, state: 'second' }
        else yield { type: 'result', result: { content: [{ type: 'text', text: 'filled' }] } }
      },
    })
    scope.add(Tools, 'fill', fill)
    scope.add(Tools, 'guarded', { ...fill, asks: true })
    scope.add(Routes, 'pid', {
      method: 'GET',
      path: '/pid',
      summary: 'Which worker answers',
      handle: async () => ({ text: String(process.pid) }),
    })
  },
})
