import { useQuery } from '@tanstack/react-query'
import { drawnIdOf } from '@svc/workflow-lang/states'
import { lazy, Suspense, useCallback, useMemo } from 'react'
import { Chips, SearchLink, useAddress } from '../address.tsx'
import { client } from '../api.ts'
import type { DrawnNode } from '../graph-layout.ts'
import { StepBadge } from '../run-state.tsx'
import type { RunSteps, Step } from '../run-steps.ts'
import { runs } from '../router.tsx'
import { isRecord } from '../schema-input.tsx'
import { type Column, Table } from '../table.tsx'
import { resultOf } from '../tool-value.ts'
import { Count, durationOf, Empty, Failure, Loading, LogLink, Time } from '../states.tsx'
import { type Run, Value } from './run-parts.tsx'
import { Replay } from './run-replay.tsx'

const Graph = lazy(() => import('../graph.tsx'))

interface ProgressProps {
  readonly run: Run
  readonly steps: RunSteps
}

/** The graph with the states of its nodes, the steps as a list, and the selected step. */
export function RunProgress({ run, steps }: ProgressProps) {
  const { step: selected } = runs.useSearch()
  return (
    <div className="progress" data-selected={selected !== undefined || undefined}>
      <RunGraph run={run} steps={steps} />
      <StepList steps={steps} />
      {selected !== undefined && <StepDetail key={selected} run={run} name={selected} steps={steps} />}
    </div>
  )
}

function idsOf(nodes: readonly DrawnNode[]): readonly string[] {
  return nodes.flatMap(({ id, bodies }) => [id, ...bodies.flatMap(body => idsOf(body.nodes))])
}

function RunGraph({ run, steps }: ProgressProps) {
  const [search, change] = useAddress()
  const { data, error, refetch } = useQuery({
    queryKey: ['drawing', run.workflow, run.definition],
    queryFn: ({ signal }) => client.get('/api/v1/workflows/drawing', { query: { run: run.workflow_id }, signal }),
    staleTime: Number.POSITIVE_INFINITY,
  })
  const nodes = data?.nodes as readonly DrawnNode[] | undefined
  const ids = useMemo(() => new Set(nodes ? idsOf(nodes) : []), [nodes])
  // the last step of a node wins, as in the drawings of the server
  const { states, latest } = useMemo(() => {
    const states = new Map<string, Step['status']>()
    const latest = new Map<string, string>()
    for (const { step, status } of steps.steps) {
      const id = drawnIdOf(step, ids)
      if (id === undefined) continue
      states.set(id, status)
      latest.set(id, step)
    }
    return { states, latest }
  }, [steps.steps, ids])
  const select = useCallback((id: string) => change({ step: latest.get(id) }), [change, latest])
  if (error) return <Failure error={error} onRetry={() => void refetch()} />
  if (!nodes) return <Loading rows={4} />
  const selected = search.step === undefined ? undefined : drawnIdOf(search.step, ids)
  return (
    <Suspense fallback={<Loading rows={4} />}>
      <Graph nodes={nodes} states={states} selected={selected} onSelect={select} label={`The graph of ${run.workflow}`} />
    </Suspense>
  )
}

const STATES = [
  [undefined, 'All'],
  ['failed', 'Failed'],
  ['running', 'Running'],
  ['waiting', 'Waiting'],
] as const

const depthOf = ({ step }: Step) => Math.min(6, Math.floor(step.split('/').length / 2))
const msOf = ({ started_at: from, finished_at: to }: Step) => (to === null ? null : Date.parse(to) - Date.parse(from))
const durationIn = (step: Step) => {
  const ms = msOf(step)
  return ms === null ? '–' : durationOf(ms)
}

const COLUMNS: readonly Column<Step>[] = [
  {
    name: 'Step',
    width: 'minmax(7rem, 2fr)',
    cell: step => <span style={{ paddingLeft: `${depthOf(step) * 0.75}rem` }}>{step.step}</span>,
  },
  { name: 'State', width: '6.5rem', cell: step => <StepBadge status={step.status} /> },
  { name: 'Type', width: 'minmax(0, 1fr)', isWide: true, cell: step => <span className="muted">{step.type}</span> },
  { name: 'Attempts', width: '4.5rem', isNumber: true, isWide: true, sortBy: step => step.attempts, cell: step => step.attempts },
  { name: 'Duration', width: '5rem', isNumber: true, sortBy: msOf, cell: durationIn },
]

/** Beside the selected step. */
const NARROW_COLUMNS = COLUMNS.filter(({ isWide }) => !isWide)

function StepList({ steps: { steps, state, error } }: { readonly steps: RunSteps }) {
  const { state: wanted, order, step: selected } = runs.useSearch()
  const shown = useMemo(() => {
    const found = wanted === undefined ? steps : steps.filter(({ status }) => status === wanted)
    return order === 'new' ? found.toReversed() : found
  }, [steps, wanted, order])
  return (
    <section className="steps" aria-label="Steps">
      <div className="steps-head">
        <Chips label="States of steps" name="state" values={STATES} />
        <SearchLink change={{ order: order === 'new' ? undefined : 'new' }} className="chip" isCurrent={order === 'new'} replace>
          Newest first
        </SearchLink>
        <span className="muted small grow number">
          <Count value={shown.length} /> {state === 'reading' ? '…' : state === 'live' ? 'live' : ''}
        </span>
      </div>
      {Boolean(error) && <Failure error={error} />}
      {state === 'reading' && steps.length === 0 && <Loading rows={6} />}
      {state !== 'reading' && shown.length === 0 && (
        <Empty title={wanted === undefined ? 'No step has started' : `No step is ${wanted}`} />
      )}
      {shown.length > 0 && (
        <Table
          name="Steps of the run"
          columns={selected === undefined ? COLUMNS : NARROW_COLUMNS}
          items={shown}
          keyOf={step => step.step}
          orderIn="sort"
          select={step => ({ step: step.step })}
          isSelected={step => step.step === selected}
        />
      )}
    </section>
  )
}

/** A step with its input and output, which only its own request reads. */
function StepDetail({ run, name, steps }: ProgressProps & { readonly name: string }) {
  const listed = steps.steps.find(({ step }) => step === name)
  const { data, error, refetch } = useQuery({
    queryKey: ['step', run.workflow_id, name, listed?.status, listed?.attempts],
    queryFn: ({ signal }) =>
      client.get('/api/v1/workflows/{id}/steps', { path: { id: run.workflow_id }, query: { step: name }, signal }),
    placeholderData: before => before,
  })
  const [step] = data?.steps ?? []
  const isOuter = !name.includes('/')
  return (
    <section className="step-detail" aria-label="The selected step">
      <div className="row">
        <h2 className="section-title grow clip">{name}</h2>
        {isOuter && run.status !== 'running' && <Replay run={run} from={name} />}
        <SearchLink change={{ step: undefined }} className="button button-quiet" replace>
          Close
        </SearchLink>
      </div>
      {error && <Failure error={error} onRetry={() => void refetch()} />}
      {!data && !error && <Loading rows={4} />}
      {data && !step && <Empty title="The run has no such step" />}
      {step && <StepContent run={run.workflow_id} step={step} progress={steps.progress.get(name)} />}
    </section>
  )
}

interface StepContentProps {
  readonly run: string
  readonly step: Step
  readonly progress: string | undefined
}

function StepContent({ run, step, progress }: StepContentProps) {
  return (
    <>
      <StepFacts step={step} />
      {progress && <p className="note">{progress}</p>}
      {step.error && (
        <p className="note note-bad">
          {step.error.message} <code>{step.error.code}</code> <LogLink request={run} />
        </p>
      )}
      <Value name="Input" value={step.input} />
      {step.status === 'completed' && <Output step={step} />}
    </>
  )
}

const ToolResult = lazy(() => import('../tool-result.tsx'))

/** The output of a step. That of a tool can have a page of its own. */
function Output({ step: { type, input, output, output_file: file } }: { readonly step: Step }) {
  const text = <Value name="Output" value={output} file={file} />
  const { name, arguments: given } = isRecord(input) ? input : {}
  if (type !== 'tool' || typeof name !== 'string' || file !== null) return text
  return (
    <Suspense fallback={text}>
      <ToolResult tool={name} input={given} result={resultOf(output)} text={text} />
    </Suspense>
  )
}

function StepFacts({ step }: { readonly step: Step }) {
  return (
    <div className="row small muted">
      <StepBadge status={step.status} />
      <span>{step.type}</span>
      <span>
        started <Time at={step.started_at} />
      </span>
      {step.finished_at && <span>took {durationIn(step)}</span>}
      {step.attempts > 1 && <span>{step.attempts} attempts</span>}
      {step.tokens > 0 && (
        <span>
          <Count value={step.tokens} /> tokens
        </span>
      )}
      {step.branch !== null && <span>branch {step.branch}</span>}
    </div>
  )
}
