import { setTimeout as sleep } from 'node:timers/promises'
import { definePlugin } from '@svc/core'
import { JobKinds } from '@svc/core/contracts'

/** Job kinds that do what a test tells them. */
export default definePlugin({
  setup(scope) {
    scope.add(JobKinds, 'manual.echo', {
      description: 'Says its input',
      input: { type: 'object', properties: { say: { type: 'string' } }, required: ['say'], additionalProperties: false },
      async *run({ input }) {
        const { say } = input as { readonly say: string }
        yield { type: 'log', level: 'info', message: `says ${say}` }
        yield { type: 'progress', progress: 1, total: 1 }
        yield { type: 'result', value: { said: say } }
      },
    })
    scope.add(JobKinds, 'manual.wait', {
      description: 'Waits until it is cancelled',
      async *run(_task, { signal }) {
        await sleep(600_000, undefined, { signal })
        yield { type: 'result', value: null }
      },
    })
    scope.add(JobKinds, 'manual.fail', {
      description: 'Fails with an error of the system',
      attempts: 1,
      async *run() {
        yield { type: 'progress', progress: 1 }
        throw new Error('cannot open /tmp/secret-place/file')
      },
    })
  },
})
