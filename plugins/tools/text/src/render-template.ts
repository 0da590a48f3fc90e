import type { Json, Tool } from '@svc/core/contracts'
import { objectOf } from '@svc/plugin-kit'
import { textOf, textTool, type Work } from './text-tool.ts'

interface Arguments {
  readonly template: string
  readonly values: { readonly [name: string]: Json }
  readonly escape_html?: boolean
}

/** Makes `render_template`: Mustache, which has no code in it. */
export function createRenderTemplate(work: Work): Tool {
  return textTool<Arguments>({
    description:
      'Fills a Mustache template: {{name}}, {{#list}}…{{/list}}, {{^empty}}…{{/empty}}, {{a.b}}. Names what is missing.',
    parameters: objectOf(
      {
        template: textOf('the template'),
        values: { type: 'object', description: 'what to fill in' },
        escape_html: { type: 'boolean', description: 'whether {{name}} is escaped for HTML; default false' },
      },
      ['escape_html']
    ),
    result: objectOf({
      text: { type: 'string' },
      missing: { type: 'array', items: { type: 'string' }, description: 'names in the template that have no value' },
    }),
    async work({ escape_html = false, ...args }, ctx) {
      const data = await work.run('render_template', { ...args, escape: escape_html }, ctx)
      const note = data.missing.length > 0 ? `\n[No value was given for: ${data.missing.join(', ')}]` : ''
      return { data, text: data.text + note }
    },
  })
}
