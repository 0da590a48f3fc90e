import { definePlugin, type JsonSchema } from '@svc/core'
import { Tools } from '@svc/core/contracts'

/** Texts that would do something if the page took them for markup. */
export const HOSTILE = [
  '<img src=x onerror="window.hacked=1">',
  '<script>window.hacked=1</script>',
  '<svg onload="window.hacked=1"></svg>',
  'javascript:window.hacked=1',
  '\u001b[31mred\u001b[0m',
  '[link](javascript:window.hacked=1) ![pixel](http://evil.example/pixel.png)',
].join('\n')

const NESTED = {
  type: 'object',
  required: ['who', 'lines'],
  additionalProperties: false,
  definitions: {
    person: {
      type: 'object',
      title: 'Person',
      required: ['name'],
      properties: {
        name: { type: 'string', title: 'Name', minLength: 2 },
        born: { type: 'string', title: 'Born', format: 'date' },
      },
    },
  },
  properties: {
    who: { $ref: '#/definitions/person', title: 'Who' },
    lines: {
      type: 'array',
      title: 'Lines',
      minItems: 1,
      items: {
        type: 'object',
        required: ['count'],
        properties: {
          count: { type: 'integer', title: 'Count', minimum: 1 },
          kind: { enum: ['bread', 'milk'], title: 'Kind', default: 'bread' },
        },
      },
    },
    pays: {
      title: 'Payment',
      oneOf: [
        {
          title: 'Cash',
          type: 'object',
          properties: { coins: { type: 'boolean', title: 'In coins' } },
          additionalProperties: false,
        },
        {
          title: 'Card',
          type: 'object',
          required: ['number'],
          properties: { number: { type: 'string', title: 'Number' } },
          additionalProperties: false,
        },
      ],
    },
    // of a tool server that means no good: it would take hours
    code: { type: 'string', title: 'Code', pattern: '^(a+)+$' },
  },
} as const

/** A tree that refers to itself. */
const TREE = {
  type: 'object',
  $defs: {
    tree: {
      type: 'object',
      properties: { name: { type: 'string', title: 'Name' }, parts: { type: 'array', items: { $ref: '#/$defs/tree' } } },
    },
  },
  properties: { root: { $ref: '#/$defs/tree' } },
} as const

/** Tools that tell the arguments they got, with schemas at which forms fail. */
export default definePlugin({
  setup(scope) {
    const add = (name: string, parameters: JsonSchema, description = 'Tells its arguments.') =>
      scope.add(Tools, name, {
        description,
        category: 'text',
        effects: ['read'],
        parameters,
        call: async args => ({ content: [{ type: 'text', text: `${JSON.stringify(args)}\n${HOSTILE}` }] }),
      })
    add('order', NESTED)
    add('tree', TREE)
    add('hostile', { type: 'object', properties: { [HOSTILE]: { type: 'string', description: HOSTILE } } }, HOSTILE)
    scope.log.info({ field: HOSTILE }, `a hostile line ${HOSTILE}`)
  },
})
