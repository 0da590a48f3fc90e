import { definePlugin, svcError } from '@svc/core'
import { Routes } from '@svc/core/contracts'
import { Greetings } from './contract.js'

export default definePlugin({
  requires: { greetings: Greetings },
  setup(scope, { greetings }) {
    scope.add(Greetings, 'en', { language: 'English', greet: async name => `Hello ${name}` })
    scope.add(Routes, 'greetings', {
      method: 'GET',
      path: '/greetings/:language',
      summary: 'Greets in a language that some plugin knows',
      scope: 'read',
      query: { type: 'object', properties: { name: { type: 'string', maxLength: 100, default: 'world' } } },
      async handle({ params: { language = '' }, query: { name = 'world' } }, ctx) {
        const greeting = greetings.get(language)
        if (greeting === undefined)
          throw svcError('NOT_FOUND', `no plugin speaks ${language}; known: ${greetings.names().join(', ')}`)
        return { body: { language: greeting.language, text: await greeting.greet(String(name), ctx) } }
      },
    })
  },
})
