import type { JsonSchema } from '@svc/core'
import type { InputRequest, TurnEvent } from '@svc/core/contracts'
import { toolSchema } from '@svc/plugin-kit/tool-schema'
import type { AnswerCheck } from './questions.ts'

/** Characters of a question. */
export const LONGEST_QUESTION = 2_000
/** Characters of the schema of a form, and of its answer, as JSON. */
const LONGEST_SCHEMA = 50_000
const LONGEST_ANSWER = 100_000
const MOST_PROBLEMS = 10

/** What a tool wants to know: as the reader sees it, and the check of the answer. */
export interface QuestionForm {
  readonly shown: NonNullable<Extract<TurnEvent, { type: 'ask' }>['form']>
  readonly check: AnswerCheck
}

/** The form of an elicitation of MCP, whose parameters are untrusted. Throws TypeError for one that cannot be shown. */
export async function questionForm({ mode, url, requestedSchema }: NonNullable<InputRequest['params']>): Promise<QuestionForm> {
  if (mode === 'url') return pageForm(url)
  if (typeof requestedSchema !== 'object' || requestedSchema === null || Array.isArray(requestedSchema))
    throw new TypeError('the tool asks for a form without a schema')
  if (JSON.stringify(requestedSchema).length > LONGEST_SCHEMA) throw new TypeError('the tool asks for a form that is too large')
  const schema = requestedSchema as JsonSchema
  const { check } = await toolSchema(schema)
  return {
    shown: { schema },
    check({ allow, content = {} }) {
      if (!allow) return []
      if (JSON.stringify(content).length > LONGEST_ANSWER) return ['is too long']
      const problems = check(structuredClone(content), 'all')
      return problems
        .slice(0, MOST_PROBLEMS)
        .map(({ path, message }) => `${path ? `${path.slice(0, 200)} ` : ''}${message.slice(0, 500)}`)
    },
  }
}

/** A page that the user opens: only its address goes to the reader. */
function pageForm(url: unknown): QuestionForm {
  const page = typeof url === 'string' ? URL.parse(url) : null
  if (page?.protocol !== 'https:' || page.username !== '' || page.password !== '')
    throw new TypeError('the tool asks to open a page that does not use https')
  return { shown: { url: page.href }, check: () => [] }
}
