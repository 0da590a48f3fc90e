import { definePlugin } from '@svc/core'
import { Tools } from '@svc/core/contracts'
import { countWords } from './count.js'

export default definePlugin({
  setup(scope) {
    scope.add(Tools, 'count_words', {
      description: 'Counts the words of a text.',
      category: 'text',
      effects: ['read'],
      parameters: {
        type: 'object',
        properties: { text: { type: 'string', description: 'The text.' } },
        required: ['text'],
        additionalProperties: false,
      },
      async call({ text }, { signal }) {
        signal.throwIfAborted()
        return { content: [{ type: 'text', text: `${countWords(/** @type {string} */ (text))}` }] }
      },
    })
  },
})
