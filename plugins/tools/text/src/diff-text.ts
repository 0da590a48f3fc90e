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

/** Creates `diff_text`, which compares two texts. */
export function createDiffText(work: Work): Tool {
  return textTool<Arguments>({
    description: 'Compares two texts line by line and returns a unified diff.',
    parameters: objectOf(
      {
        before: textOf('old text'),
        after: textOf('new text'),
        context: {
          type: 'integer',
          minimum: 0,
          maximum: 100,
          description: `unchanged lines around each change; default ${CONTEXT}`,
        },
        name: { type: 'string', maxLength: 200, pattern: '^[^\\r\\n]*$', description: 'name of the text in the diff' },
      },
      ['context', 'name']
    ),
    result: objectOf({
      equal: { type: 'boolean' },
      added: { type: 'integer', description: 'number of added lines' },
      removed: { type: 'integer', description: 'number of removed lines' },
      diff: { type: 'string', description: 'empty if the texts are equal' },
    }),
    async work({ context = CONTEXT, name = 'text', ...args }, ctx) {
      const data = await work.run('diff_text', { ...args, context, name }, ctx)
      return { data, text: data.equal ? '[The texts are equal.]' : data.diff }
    },
  })
}
