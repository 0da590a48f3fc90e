import { useMutation, useQuery } from '@tanstack/react-query'
import { type FormEvent, useState } from 'react'
import { client, textIn } from '../api.ts'
import { JsonField, jsonIn } from '../json-field.tsx'
import { Json } from '../message.tsx'
import { Card } from '../parts.tsx'
import { Failure, Loading } from '../states.tsx'
import type { Run } from './run-parts.tsx'

/** What a workflow lets callers send to its runs, and ask of them. */
export function Signals({ run }: { readonly run: Run }) {
  const { workflow_id: id } = run
  const { data, error, refetch } = useQuery({
    queryKey: ['run', id, 'interface'],
    queryFn: ({ signal }) => client.runs.queries(id, { signal }),
  })
  if (error) return <Failure error={error} onRetry={() => void refetch()} />
  if (!data) return <Loading />
  return (
    <div className="reader-scroll pad stack" tabIndex={0} role="region" aria-label="Signals and queries">
      <Card title="Send a signal">
        {run.status === 'running' ? (
          <SendSignal id={id} names={data.signals === null ? undefined : Object.keys(data.signals)} />
        ) : (
          <p className="facts-none">The run has ended. Only running ones take signals.</p>
        )}
      </Card>
      <Card title="Queries">
        {data.queries.length === 0 && <p className="facts-none">The workflow has no queries.</p>}
        {data.queries.map(query => (
          <Query key={query.name} id={id} query={query} />
        ))}
      </Card>
    </div>
  )
}

interface SendProps {
  readonly id: string
  /** Those that the workflow declares. Undefined: all are accepted. */
  readonly names: readonly string[] | undefined
}

function SendSignal({ id, names }: SendProps) {
  const [sent, setSent] = useState<string>()
  const send = useMutation({
    mutationFn: (data: FormData) => client.runs.signal(id, { name: textIn(data, 'name'), data: jsonIn(data, 'data') }),
    onSuccess: (_, data) => setSent(textIn(data, 'name')),
  })
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault()
    setSent(undefined)
    send.mutate(new FormData(event.currentTarget))
  }
  if (names?.length === 0) return <p className="facts-none">The workflow accepts no signals.</p>
  return (
    <form className="stack pad" onSubmit={submit}>
      <label className="field">
        <span>Signal</span>
        {names ? (
          <select className="select" name="name" required>
            {names.map(name => (
              <option key={name} value={name}>
                {name}
              </option>
            ))}
          </select>
        ) : (
          <input className="input" name="name" required maxLength={100} spellCheck={false} />
        )}
      </label>
      <JsonField name="data" label="Data" value={{}} />
      {send.error && <Failure error={send.error} />}
      <div className="row">
        <button type="submit" className="button button-primary" disabled={send.isPending}>
          Send
        </button>
        <span className="muted small" role="status">
          {sent !== undefined && `${sent} was sent.`}
        </span>
      </div>
    </form>
  )
}

interface QueryProps {
  readonly id: string
  readonly query: { readonly name: string; readonly description: string | null }
}

function Query({ id, query: { name, description } }: QueryProps) {
  const read = useMutation({ mutationFn: () => client.runs.query(id, name) })
  return (
    <div className="stack pad">
      <div className="row spread">
        <div className="grow">
          <code>{name}</code>
          {description !== null && <p className="muted small">{description}</p>}
        </div>
        <button type="button" className="button" disabled={read.isPending} onClick={() => read.mutate()}>
          Read
        </button>
      </div>
      {read.error && <Failure error={read.error} />}
      {read.data && <Json value={read.data.value} label={`Value of ${name}`} />}
    </div>
  )
}
