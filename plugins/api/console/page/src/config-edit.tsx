import { useQuery } from '@tanstack/react-query'
import { isApiError, type Schemas } from '@svc/client'
import { lazy, Suspense, useState } from 'react'
import { client, messageOf } from './api.ts'
import { Card } from './parts.tsx'
import { Problem, useAgain, useChange } from './records.tsx'
import { Loading } from './states.tsx'

const SchemaForm = lazy(() => import('./schema-form.tsx'))

type Value = Schemas['ConfigValue']
type ConfigProblem = Schemas['ConfigProblem']
type JsonObject = Record<string, unknown>

const isObject = (value: unknown): value is JsonObject => typeof value === 'object' && value !== null && !Array.isArray(value)

/** The schema of a key: its part of the whole one, with the definitions that it can refer to. */
function schemaAt(whole: JsonObject, keys: readonly string[]): JsonObject | undefined {
  let at: unknown = whole
  for (const key of keys) {
    if (!isObject(at)) return undefined
    const { properties, additionalProperties } = at
    at = isObject(properties) && Object.hasOwn(properties, key) ? properties[key] : additionalProperties
  }
  if (!isObject(at)) return undefined
  const { definitions, $defs } = whole
  return { ...at, ...(definitions ? { definitions } : {}), ...($defs ? { $defs } : {}) }
}

/** `server.port: 9000` as a merge patch. */
const patchOf = (keys: readonly string[], value: unknown): JsonObject =>
  keys.reduceRight<unknown>((inner, key) => ({ [key]: inner }), value) as JsonObject

const jsonOf = (value: unknown) => JSON.stringify(value, null, 2) ?? ''

/** A value that is edited in a form and as JSON. Text that is not JSON leaves the draft as it was. */
function useDraft(first: unknown) {
  const [draft, setDraft] = useState<unknown>(first)
  const [text, setText] = useState(() => jsonOf(first))
  const [badText, setBadText] = useState<string>()
  return {
    draft,
    text,
    badText,
    fromForm: (next: unknown) => {
      setDraft(next)
      setText(jsonOf(next))
      setBadText(undefined)
    },
    fromText: (next: string) => {
      setText(next)
      try {
        setDraft(JSON.parse(next))
        setBadText(undefined)
      } catch (failure) {
        setBadText(messageOf(failure))
      }
    },
  }
}

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
  const { draft, text, badText, fromForm, fromText } = useDraft(value.value)
  const { save, problems } = useSave({ value, etag })
  if (error) return <Problem error={error} />
  if (!data) return <Loading rows={3} />
  const schema = schemaAt(data as JsonObject, value.keys)
  return (
    <Card title="Change it">
      <div className="pane-in stack">
        {schema && (
          <Suspense fallback={<Loading rows={2} />}>
            <SchemaForm schema={schema} value={draft} onChange={fromForm} />
          </Suspense>
        )}
        <DraftText text={text} badText={badText} onChange={fromText} />
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
            disabled={save.isRunning || badText !== undefined}
            onClick={() => save.run(draft)}
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

interface DraftTextProps {
  readonly text: string
  /** Why the text is not JSON. */
  readonly badText: string | undefined
  readonly onChange: (text: string) => void
}

const DraftText = ({ text, badText, onChange }: DraftTextProps) => (
  <label className="field">
    <span>As JSON</span>
    <textarea
      className="textarea mono"
      rows={Math.min(16, Math.max(2, text.split('\n').length))}
      spellCheck={false}
      value={text}
      aria-invalid={badText !== undefined}
      onChange={event => onChange(event.target.value)}
    />
    {badText && (
      <span className="problem" role="alert">
        {badText}
      </span>
    )}
  </label>
)

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
