import type { Json, Tool } from '@svc/core/contracts'
import { objectOf } from '@svc/plugin-kit'
import { textOf, textTool, type Work } from './text-tool.ts'

interface Arguments {
  readonly template: string
  readonly values: { readonly [name: string]: Json }
  readonly escape_html?: boolean
}

/** Creates `render_template`, which fills a Mustache template. Mustache contains no code. */
export function createRenderTemplate(work: Work): Tool {
  return textTool<Arguments>({
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
