import { beside, chat, exchange, get, ok, post } from '../../exchange.ts'

export default exchange({
  rule: 'lets a provider whose list of models is not known whole answer with any model',
  source: 'decisions.md 1, which model answers: a provider whose model list is unknown accepts any',
  together: 'switches',
  config: { plugins: [beside('./plugin.ts', import.meta.url)] },
  steps: [
    {
      request: chat({ message: 'a', provider: 'open', model: 'whatever/7b:latest' }),
      expect: ok({ response: 'I am whatever/7b:latest' }),
    },
    { request: chat({ message: 'a', provider: 'open' }), expect: ok({ model: 'known' }) },
    {
      request: post('/api/v1/model/switch', { provider: 'open', model: 'unheard-of' }),
      expect: ok({ effective: { model: 'unheard-of' } }),
    },
    { request: chat({ message: 'a' }), expect: ok({ provider: 'open', response: 'I am unheard-of' }) },
    { request: chat({ message: 'a', model: 'another' }), expect: ok({ provider: 'open', response: 'I am another' }) },
    { request: get('/api/v1/providers'), expect: ok() },
  ],
})
