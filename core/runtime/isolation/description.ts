import { schema } from '@svc/core'
import { isSmall } from '@svc/core/internal'
import type { Description } from './contract.ts'
import { declaresInvalid } from './errors.ts'

const LONGEST = 1_048_576
const word = { type: 'string', maxLength: 200 } as const
const hook = { type: 'object', properties: { kind: { enum: ['series', 'waterfall', 'bail'] } }, required: ['kind'] } as const
const token = {
  type: 'object',
  properties: {
    what: { enum: ['service', 'slot'] },
    name: word,
    api: { type: 'integer' },
    methods: { type: 'object', additionalProperties: { enum: ['call', 'stream'] } },
    hooks: { type: 'object', additionalProperties: hook },
    changed: hook,
    local: { type: 'boolean' },
  },
  required: ['what', 'name', 'api', 'methods'],
} as const

// words that the quick check knows: a start loads no other for it
const form = schema<Description>({
  type: 'object',
  properties: {
    section: word,
    instances: word,
    type: word,
    config: { type: ['object', 'boolean'] },
    requires: { type: 'object', additionalProperties: token },
    optional: { type: 'object', additionalProperties: token },
    provides: token,
  },
  required: ['requires', 'optional'],
})

/** What an isolated plugin says that it declares: a stranger's word, on which the start of the host hangs. Throws PLUGIN_INVALID. */
export function descriptionOf(plugin: string, said: unknown): Description {
  if (!isSmall(said, LONGEST)) throw declaresInvalid(plugin, `more than ${LONGEST} characters`)
  const [fault] = form.check(said)
  if (fault) throw declaresInvalid(plugin, `${fault.path} ${fault.message}`.trim())
  return said as Description
}
