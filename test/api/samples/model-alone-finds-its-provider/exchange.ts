import { chat, exchange, ok, refused } from '../../exchange.ts'

export default exchange({
  rule: 'lets a model named alone be answered by the current provider, else by the only provider that has it, else by none',
  source: 'decisions.md 1, which model answers: `model` alone',
  together: 'parts',
  config: {
    providers: {
      local: {},
      left: { type: 'local', models: [model('both'), model('only-left')] },
      right: { type: 'local', models: [model('both'), model('local-1')] },
    },
  },
  steps: [
    { request: chat({ message: 'a', model: 'local-1' }), expect: ok({ provider: 'local', model: 'local-1' }) },
    { request: chat({ message: 'a', model: 'only-left' }), expect: ok({ provider: 'left', model: 'only-left' }) },
    { request: chat({ message: 'a', model: 'both' }), expect: refused(404, 'MODEL_NOT_FOUND', { model: 'both' }) },
    { request: chat({ message: 'a', provider: 'right' }), expect: ok({ provider: 'right', model: 'both' }) },
  ],
})

function model(id: string) {
  return { id, context: 10_000, output: 100 }
}
