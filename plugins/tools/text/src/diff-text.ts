import type { Tool } from '@svc/core/contracts'
import { objectOf } from '@svc/plugin-kit'
import { textOf, textTool, type Work } from './text-tool.ts'

interface Arguments {
  readonly before: string
  readonly after: string
  readonly context?: number
  readonly name?: string
}

const CONTEXT = 3

/** Makes `diff_text`: a unified diff of two texts. */
export function createDiffText(work: Work): Tool {
  return textTool<Arguments>({
    description: 'Compares two texts line by line and answers a unified diff.',
    parameters: objectOf(
      {
        before: textOf('the old text'),
        after: textOf('the new text'),
        context: {
          type: 'integer',
          minimum: 0,
          maximum: 100,
          description: `unchanged lines round each change; default ${CONTEXT}`,
        },
        name: { type: 'string', maxLength: 200, pattern: '^[^\\r\\n]*$', description: 'what the text is called in the diff' },
      },
      ['context', 'name']
    ),
    result: objectOf({
      equal: { type: 'boolean' },
      added: { type: 'integer', description: 'lines added' },
      removed: { type: 'integer', description: 'lines removed' },
      diff: { type: 'string', description: 'empty when the texts are equal' },
    }),
    async work({ context = CONTEXT, name = 'text', ...args }, ctx) {
      const data = await work.run('diff_text', { ...args, context, name }, ctx)
      return { data, text: data.equal ? '[The texts are equal.]' : data.diff }
    },
  })
}
