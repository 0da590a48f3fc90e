import { useQuery } from '@tanstack/react-query'
import { isApiError, type Schemas } from '@svc/client'
import { useState } from 'react'
import { client } from './api.ts'
import { Card } from './parts.tsx'
import { Problem, useAgain, useChange } from './records.tsx'
import { isRecord, JsonText, SchemaForm, useEditedValue } from './schema-input.tsx'
import { Loading } from './states.tsx'

type Value = Schemas['ConfigValue']
type ConfigProblem = Schemas['ConfigProblem']
type JsonObject = Record<string, unknown>

/** The schema of a key: its part of the whole one, with the definitions that it can refer to. */
function schemaAt(whole: JsonObject, keys: readonly string[]): JsonObject | undefined {
  let at: unknown = whole
  for (const key of keys) {
    if (!isRecord(at)) return undefined
    const { properties, additionalProperties } = at
    at = isRecord(properties) && Object.hasOwn(properties, key) ? properties[key] : additionalProperties
  }
  if (!isRecord(at)) return undefined
  const { definitions, $defs } = whole
  return { ...at, ...(definitions ? { definitions } : {}), ...($defs ? { $defs } : {}) }
}

/** `server.port: 9000` as a merge patch. */
const patchOf = (keys: readonly string[], value: unknown): JsonObject =>
  keys.reduceRight<unknown>((inner, key) => ({ [key]: inner }), value) as JsonObject

/** Checks a value, then saves it. */
function useSave({ value, etag }: EditValueProps) {
  const [problems, setProblems] = useState<readonly ConfigProblem[]>([])
  const again = useAgain(['config'])
  const save = useChange(
    async (next: unknown) => {
      const values = patchOf(value.keys, next) as never
      const checked = await client.post('/api/v1/config/check', { body: { values } })
      setProblems(checked.problems)
      if (!checked.ok) throw new Error('The server would not start with this value. Nothing was changed.')
      return client
        .patch('/api/v1/config', { body: { values }, headers: { 'if-match': etag } })
        .catch(async (failure: unknown) => {
          if (isStale(failure)) await again()
          throw failure
        })
    },
    { keys: [['config']] }
  )
  return { save, problems }
}

interface EditValueProps {
  readonly value: Value
  readonly etag: string
}

/** Changes one key of the file of the svc home. The server checks the draft with its plugins before it is saved. */
export function EditValue({ value, etag }: EditValueProps) {
  const { data, error } = useQuery({
    queryKey: ['config', 'schema'],
    staleTime: Number.POSITIVE_INFINITY,
    queryFn: ({ signal }) => client.get('/api/v1/config/schema', { signal }),
  })
  const edited = useEditedValue(value.value)
  const { save, problems } = useSave({ value, etag })
  if (error) return <Problem error={error} />
  if (!data) return <Loading rows={3} />
  const schema = schemaAt(data as JsonObject, value.keys)
  return (
    <Card title="Change it">
      <div className="pane-in stack">
        {schema && <SchemaForm schema={schema} value={edited.value} onChange={edited.fromForm} />}
        <JsonText label="As JSON" edited={edited} schema={schema} />
        <ProblemList problems={problems} />
        <Problem error={staleText(save.error) ?? save.error} />
        {save.result && (
          <p className="note" role="status">
            {save.result.changed.length === 0 ? 'It has this value already.' : 'Saved. Reload the server to load it.'}
          </p>
        )}
        <div className="row">
          <button
            type="button"
            className="button button-primary"
            disabled={save.isRunning || edited.badText !== undefined}
            onClick={() => save.run(edited.value)}
          >
            {save.isRunning ? 'Checking …' : 'Check and save'}
          </button>
          {value.source.kind === 'home' && (
            <button type="button" className="button" disabled={save.isRunning} onClick={() => save.run(null)}>
              Remove from the file
            </button>
          )}
        </div>
      </div>
    </Card>
  )
}

const ProblemList = ({ problems }: { readonly problems: readonly ConfigProblem[] }) => (
  <ul className="plain-list stack-tight" aria-label="Problems">
    {problems.map(problem => (
      <li key={problem.message} className="note note-bad">
        {problem.message}
        {problem.hint && <span className="small"> {problem.hint}</span>}
      </li>
    ))}
  </ul>
)

/** Someone else has changed the file meanwhile. */
const isStale = (error: unknown) => isApiError(error) && error.status === 412
const staleText = (error: unknown) =>
  isStale(error)
    ? new Error('The file was changed meanwhile. What you see is read again: look at it, then save again.', { cause: error })
    : undefined
