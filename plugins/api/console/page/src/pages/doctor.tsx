import type { Schemas } from '@svc/client'
import { useEffect, useRef, useState } from 'react'
import { client } from '../api.ts'
import { Json } from '../message.tsx'
import { Problem } from '../records.tsx'
import { Badge, Empty, Title, type Tone } from '../states.tsx'

type Finding = Schemas['Finding']

const isFinding = (event: object): event is Finding => 'state' in event

interface Examination {
  readonly state: 'none' | 'running' | 'ended'
  readonly findings: readonly Finding[]
  readonly problem?: unknown
  readonly at?: number
}

/** What is wrong comes first. */
const ORDER: readonly Finding['state'][] = ['fail', 'warn', 'ok']
const TONES: Readonly<Record<Finding['state'], Tone>> = { ok: 'ok', warn: 'warn', fail: 'bad' }
const WORDS: Readonly<Record<Finding['state'], string>> = { ok: 'ok', warn: 'warning', fail: 'fails' }

function useExamination() {
  const [seen, setSeen] = useState<Examination>({ state: 'none', findings: [] })
  const ending = useRef<AbortController>(undefined)
  useEffect(() => () => ending.current?.abort(), [])
  const examine = async () => {
    ending.current?.abort()
    const own = (ending.current = new AbortController())
    setSeen({ state: 'running', findings: [] })
    try {
      const events = client.stream('get', '/api/v1/doctor', { signal: own.signal, headers: { accept: 'text/event-stream' } })
      for await (const event of events)
        if (isFinding(event)) setSeen(before => ({ ...before, findings: [...before.findings, event] }))
      setSeen(before => ({ ...before, state: 'ended', at: Date.now() }))
    } catch (problem) {
      if (!own.signal.aborted) setSeen(before => ({ ...before, state: 'ended', problem }))
    }
  }
  return { seen, examine }
}

export function Doctor() {
  const { seen, examine } = useExamination()
  const { state, findings, problem } = seen
  const sorted = findings.toSorted((a, b) => ORDER.indexOf(a.state) - ORDER.indexOf(b.state) || a.name.localeCompare(b.name))
  const bad = findings.filter(finding => finding.state !== 'ok').length
  return (
    <div className="page">
      <div className="row spread">
        <div className="row">
          <Title name="Doctor">Doctor</Title>
          {state === 'ended' && !problem && (
            <Badge tone={findings.some(finding => finding.state === 'fail') ? 'bad' : bad > 0 ? 'warn' : 'ok'}>
              {bad === 0 ? 'all is well' : `${bad} to look at`}
            </Badge>
          )}
        </div>
        <button type="button" className="button button-primary" disabled={state === 'running'} onClick={() => void examine()}>
          {state === 'running' ? 'Examining …' : state === 'none' ? 'Examine the server' : 'Examine again'}
        </button>
      </div>
      <p className="muted small">
        Each part of the running server examines itself thoroughly, which can take minutes. On its machine,{' '}
        <code>svc doctor</code> also checks folders, configuration files, ports and the sandbox.
      </p>
      <Problem error={problem} />
      {state === 'none' && <Empty title="Not examined yet">Findings appear here as soon as a part has made them.</Empty>}
      {sorted.length > 0 && (
        <ul className="card plain-list" aria-label="Findings" aria-live="polite">
          {sorted.map(finding => (
            <Row key={finding.name} finding={finding} />
          ))}
        </ul>
      )}
    </div>
  )
}

function Row({ finding: { name, state, message, hint, detail } }: { readonly finding: Finding }) {
  return (
    <li className="finding">
      <Badge tone={TONES[state]}>{WORDS[state]}</Badge>
      <div className="grow stack-tight">
        <span>
          <strong>{name}</strong> <span className="muted">{message}</span>
        </span>
        {hint !== undefined && state !== 'ok' && <span className="small">{hint}</span>}
        {detail !== undefined && (
          <details className="small">
            <summary className="muted">Details</summary>
            <Json value={detail} label={`Details of ${name}`} />
          </details>
        )}
      </div>
    </li>
  )
}
