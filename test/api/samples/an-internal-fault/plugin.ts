import { definePlugin } from '@svc/core'
import { Routes, Tools } from '@svc/core/contracts'

const fault = () => {
  throw new Error('could not open /var/lib/secret.key with password hunter2')
}

export default definePlugin({
  setup(scope) {
    scope.add(Routes, 'boom', { method: 'GET', path: '/boom', summary: 'Fails', handle: async () => fault() })
    scope.add(Routes, 'burst', {
      method: 'GET',
      path: '/burst',
      summary: 'Fails as a stream',
      async *stream() {
        yield fault()
      },
    })
    scope.add(Tools, 'odd', {
      description: 'Has parameters of every form.',
      category: 'games',
      effects: [],
      parameters: {
        type: 'object',
        $defs: { step: { type: 'integer', description: 'A number of steps' } },
        properties: {
          union: { type: ['string', 'null'] },
          choice: { anyOf: [{ type: 'number' }, { type: 'string' }], description: 'This or that' },
          anything: { description: 'Whatever' },
          referred: { $ref: '#/$defs/step' },
        },
        required: ['union'],
      },
      call: async () => ({ content: [] }),
    })
  },
})
