import type { Tool, Json } from '@svc/core/contracts'
import { objectOf } from '@svc/plugin-kit'
import { textOf, textTool, type Work } from './text-tool.ts'

interface DiffArguments {
  readonly before: string
  readonly after: string
  readonly context?: number
  readonly name?: string
}

const CONTEXT = 3

/** Creates `diff_text`, which compares two texts. */
export function createDiffText(work: Work): Tool {
  return textTool<DiffArguments>({
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

interface TemplateArguments {
  readonly template: string
  readonly values: { readonly [name: string]: Json }
  readonly escape_html?: boolean
}

/** Creates `render_template`, which fills a Mustache template. Mustache contains no code. */
export function createRenderTemplate(work: Work): Tool {
  return textTool<TemplateArguments>({
    description:
      'Fills a Mustache template: {{name}}, {{#list}}…{{/list}}, {{^empty}}…{{/empty}}, {{a.b}}. Reports names without a value.',
    parameters: objectOf(
      {
        template: textOf('template'),
        values: { type: 'object', description: 'values by name' },
        escape_html: { type: 'boolean', description: 'whether to escape {{name}} for HTML; default false' },
      },
      ['escape_html']
    ),
    result: objectOf({
      text: { type: 'string' },
      missing: { type: 'array', items: { type: 'string' }, description: 'names in the template without a value' },
    }),
    async work({ escape_html = false, ...args }, ctx) {
      const data = await work.run('render_template', { ...args, escape: escape_html }, ctx)
      const note = data.missing.length > 0 ? `\n[Names without a value: ${data.missing.join(', ')}]` : ''
      return { data, text: data.text + note }
    },
  })
}
