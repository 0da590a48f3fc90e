import { BOOLEAN, nullable, OBJECT, object, STRING } from '@svc/api-types'
import { type CallContext, type JsonSchema, svcError } from '@svc/core'
import type { WorkflowProblem } from '@svc/core/contracts'

/** Whether the caller sees what only an administrator may see. */
export const isAdmin = ({ principal: { scopes } }: CallContext): boolean => scopes.includes('admin') || scopes.includes('*')

/** A time in milliseconds as the API writes it. */
export const timeRecord = (ms: number | undefined): string | null => (ms === undefined ? null : new Date(ms).toISOString())

const SHOWN = 200

/** The error 404 for the name of a thing in a path. */
export const notFound = (field: string, value: string) =>
  svcError('INVALID_VALUE', `${field} not found`, { details: { field, value: value.slice(0, SHOWN), reason: 'not found' } })

export const PROBLEM: JsonSchema = {
  ...(object({
    message: STRING,
    path: {
      ...(STRING as object),
      description: 'The path of the problem, such as nodes.fetch.next. Empty if it concerns the whole document.',
    },
    line: nullable('integer'),
    column: nullable('integer'),
    hint: nullable('string'),
  }) as object),
  title: 'DefinitionProblem',
}

/** A problem of a definition, with its place. */
export const problemRecord = ({ message, path, line, column, hint }: WorkflowProblem) => ({
  message,
  path,
  line: line ?? null,
  column: column ?? null,
  hint: hint ?? null,
})

/** What to do after a change that waits for a reload. */
export const RELOAD_HINT = 'Reload the server to use the change: POST /api/v1/reload, or run `svc reload`'
export const HINT: JsonSchema = { ...(nullable('string') as object), description: 'What to do next.' }

/** The response of a change that names a version which is not the present one. */
export const STALE = {
  '412': {
    description: 'PRECONDITION_FAILED: it has changed since you read it.',
    schema: object({ success: BOOLEAN, error: STRING, error_code: STRING, details: OBJECT }),
  },
} as const
