import { useQuery } from '@tanstack/react-query'
import { isApiError, type Schemas } from '@svc/client'
import { useState } from 'react'
import { client } from './api.ts'
import { Card } from './parts.tsx'
import { Problem, useAgain, useChange } from './records.tsx'
import { isRecord, SchemaInput, useEditedValue } from './schema-input.tsx'
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

interface Checked {
  readonly next: unknown
  readonly problems: readonly ConfigProblem[]
}

/** Checks a value, then saves it. */
function useSave({ value, etag }: EditValueProps) {
  const [checked, setChecked] = useState<Checked>()
  const again = useAgain(['config'])
  const save = useChange(
    async (next: unknown) => {
      const values = patchOf(value.keys, next) as never
      const { ok, problems } = await client.post('/api/v1/config/check', { body: { values } })
      setChecked({ next, problems })
      if (!ok) return undefined
      return client
        .patch('/api/v1/config', { body: { values }, headers: { 'if-match': etag } })
        .catch(async (failure: unknown) => {
          if (isStale(failure)) await again()
          throw failure
        })
    },
    { keys: [['config']] }
  )
  return { save, checked }
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
  const { save, checked } = useSave({ value, etag })
  if (error) return <Problem error={error} />
  if (!data) return <Loading rows={3} />
  // a draft that was changed since has other problems, or none
  const problems = checked && [edited.value, null].includes(checked.next) ? checked.problems : []
  return (
    <Card title="Change it">
      <div className="pane-in stack">
        <SchemaInput
          schema={schemaAt(data as JsonObject, value.keys)}
          label="Value as JSON"
          edited={edited}
          hasProblems={problems.length === 0}
        />
        <Outcome save={save} problems={problems} />
        <div className="row">
          <button
            type="button"
            className="button button-primary"
            disabled={save.isRunning || edited.badText !== undefined}
            onClick={() => save.run(edited.value)}
          >
            {save.isRunning ? 'Checking …' : 'Check and save'}
          </button>
          {value.in_file && <RemoveButton save={save} />}
        </div>
      </div>
    </Card>
  )
}

const WAYS: Readonly<Partial<Record<Value['source']['kind'], (name: string | null) => string>>> = {
  file: name => `Change it in ${name ?? 'that file'} on the machine of the server, then reload.`,
  environment: name => `Change or unset ${name ?? 'the variable'} in the environment of the server, then restart it.`,
  flags: () => 'Restart the server without the flag, or with another value.',
}

/** A key that the file of the svc home cannot change: only a value without effect can be removed there. */
export function OverriddenValue({ value, etag }: EditValueProps) {
  const { save, checked } = useSave({ value, etag })
  return (
    <Card title="Change it">
      <div className="pane-in stack">
        <p className="note note-warn">
          This page writes to the file of the svc home, which the source of this value overrides.{' '}
          {WAYS[value.source.kind]?.(value.source.name)}
        </p>
        {value.in_file && <p>The file of the svc home has a value for it, too, without effect.</p>}
        <Outcome save={save} problems={checked?.problems ?? []} />
        {value.in_file && (
          <div className="row">
            <RemoveButton save={save} />
          </div>
        )}
      </div>
    </Card>
  )
}

type Save = ReturnType<typeof useSave>['save']

const RemoveButton = ({ save }: { readonly save: Save }) => (
  <button type="button" className="button" disabled={save.isRunning} onClick={() => save.run(null)}>
    Remove from the file
  </button>
)

/** How the last check or change ended. */
const Outcome = ({ save, problems }: { readonly save: Save; readonly problems: readonly ConfigProblem[] }) => (
  <>
    {problems.length > 0 && (
      <div className="note note-bad" role="alert">
        Nothing was changed.
        <ul className="plain-list stack-tight" aria-label="Problems">
          {problems.map(problem => (
            <li key={problem.message}>
              {problem.message}
              {problem.hint && <span className="small">. {problem.hint}</span>}
            </li>
          ))}
        </ul>
      </div>
    )}
    <Problem error={staleText(save.error) ?? save.error} />
    {save.result && (
      <p className="note" role="status">
        {save.result.changed.length === 0 ? 'It has this value already.' : 'Saved. Reload the server to load it.'}
      </p>
    )}
  </>
)

/** Someone else has changed the file meanwhile. */
const isStale = (error: unknown) => isApiError(error) && error.status === 412
const staleText = (error: unknown) =>
  isStale(error)
    ? new Error('The file was changed meanwhile. What you see is read again: look at it, then save again.', { cause: error })
    : undefined
