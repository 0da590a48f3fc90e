import { useQuery } from '@tanstack/react-query'
import type { BodyOf, Schemas } from '@svc/client'
import { type FormEvent, useEffect, useState } from 'react'
import { SearchLink, useAddress } from './address.tsx'
import { client, textIn } from './api.ts'
import { onEvents } from './feed.ts'
import { Back } from './list.tsx'
import { Buttons, Card, Facts, Panel } from './parts.tsx'
import { ItemHead, Problem, RUNS, Step, Steps, useAgain, useChange } from './records.tsx'
import { Badge, Empty, Failure, Loading, Time, type Tone } from './states.tsx'
import { visible } from './visible-text.ts'

// A change of the plugins: plan, consent, progress, result. Nothing runs before the consent.

type Detail = Schemas['PluginDetail']
type Plan = Schemas['PluginPlan']
type Planned = Schemas['PlannedPlugin']
type Job = Schemas['Job']
type PlanBody = BodyOf<'post', '/api/v1/plugins/plans'>

const PLAN_MS = 300_000
const makePlan = (body: PlanBody) => client.post('/api/v1/plugins/plans', { body, timeoutMs: PLAN_MS, retry: false })

/** The largest archive that the server takes. */
const MOST_BYTES = 16 * 1_048_576

async function archiveOf(file: File): Promise<string> {
  if (file.size > MOST_BYTES) throw new Error('The archive is too large: the server takes at most 16 MiB.')
  const bytes = new Uint8Array(await file.arrayBuffer())
  let text = ''
  // `fromCharCode` takes a limited number of arguments
  for (let at = 0; at < bytes.length; at += 0x8000) text += String.fromCharCode(...bytes.subarray(at, at + 0x8000))
  return btoa(text)
}

async function bodyOf(data: FormData): Promise<PlanBody> {
  const file = data.get('archive')
  if (file instanceof File && file.size > 0) return { action: 'install', archive: await archiveOf(file) }
  const version = textIn(data, 'version')
  return { action: 'install', name: textIn(data, 'name'), ...(version === '' ? {} : { version }) }
}

/** Installs a package of the registry, or an archive of the reader's machine. */
export function Install() {
  const plan = useChange(async (data: FormData) => makePlan(await bodyOf(data)))
  const [from, setFrom] = useState<'registry' | 'archive'>('registry')
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault()
    plan.run(new FormData(event.currentTarget))
  }
  return (
    <>
      <ItemHead title="Install a plugin" back={<Back change={{ change: undefined }} />} />
      <div className="reader-scroll">
        <div className="pane">
          <form className="card pane-in stack" aria-label="What to install" onSubmit={submit}>
            <fieldset className="row choices-row">
              <legend className="visually-hidden">Where it comes from</legend>
              {(['registry', 'archive'] as const).map(value => (
                <label key={value} className="check">
                  <input type="radio" name="from" checked={from === value} onChange={() => setFrom(value)} />
                  <span>{value === 'registry' ? 'From the registry' : 'From an archive on this machine'}</span>
                </label>
              ))}
            </fieldset>
            {from === 'registry' ? <PackageFields /> : <ArchiveField />}
            <div className="row">
              <button type="submit" className="button button-primary" disabled={plan.isRunning}>
                {plan.isRunning ? 'Inspecting …' : 'Inspect'}
              </button>
              <span className="muted small">svc inspects the package. None of its code runs.</span>
            </div>
            <Problem error={plan.error} />
          </form>
          {plan.result && <Consent plan={plan.result} onCancel={plan.reset} />}
        </div>
      </div>
    </>
  )
}

const PackageFields = () => (
  <div className="beside">
    <label className="field">
      <span>Name of the package</span>
      <input className="input" name="name" required maxLength={214} spellCheck={false} placeholder="svc-plugin-weather" />
    </label>
    <label className="field">
      <span>Version (optional)</span>
      <input className="input" name="version" maxLength={100} spellCheck={false} placeholder="the newest" />
    </label>
  </div>
)

const ArchiveField = () => (
  <label className="field">
    <span>Archive</span>
    <input className="input" type="file" name="archive" required accept=".tgz,.gz,application/gzip" />
    <span className="muted">
      A packed package: <code>npm pack</code> or <code>svc plugins pack</code> makes one.
    </span>
  </label>
)

interface ConsentProps {
  readonly plan: Plan
  readonly onCancel: () => void
}

/** What exactly a plan would do. It is applied only as it is shown. */
function Consent({ plan, onCancel }: ConsentProps) {
  const [, change] = useAddress()
  const apply = useChange(
    () => client.post('/api/v1/plugins/plans/{hash}/apply', { path: { hash: plan.hash }, timeoutMs: PLAN_MS }),
    {
      onDone: job => change({ change: job.id }, true),
    }
  )
  return (
    <section className="stack" aria-label="The plan">
      {plan.is_empty && <p className="note">Nothing would change: this is installed already.</p>}
      {plan.plugins.map(plugin => (
        <PlannedCard key={plugin.name} plugin={plugin} />
      ))}
      {plan.changes.map(({ name, version, to }) => (
        <p key={name} className="note">
          <strong>{name}</strong> {version} will be {to}.
        </p>
      ))}
      <Problem error={apply.error} />
      <div className="row">
        {!plan.is_empty && (
          <button type="button" className="button button-primary" disabled={apply.isRunning} onClick={() => apply.run()}>
            {apply.isRunning ? 'Checking again …' : CONSENTS[plan.action]}
          </button>
        )}
        <button type="button" className="button" onClick={onCancel}>
          Cancel
        </button>
        <span className="muted small">
          The plan expires <Time at={plan.expires_at} />.
        </span>
      </div>
    </section>
  )
}

const CONSENTS: Readonly<Record<Plan['action'], string>> = {
  install: 'Allow this and install',
  update: 'Allow this and update',
  rollback: 'Allow this and roll back',
  uninstall: 'Uninstall',
  enable: 'Enable',
  disable: 'Disable',
}

const APPS = 'run in a closed frame of the console. What they read there can leave through the browser of the reader.'
const VIEWS = 'are data that the console draws'

/** What the pages of a plugin are: apps, which run, or views. */
function aboutPages(pages: unknown): string | false {
  const all = Object.values(Object(pages) as Readonly<Record<string, { readonly view?: unknown }>>)
  if (all.length === 0) return false
  return all.some(({ view }) => view === undefined) ? APPS : VIEWS
}

function PlannedCard({ plugin }: { readonly plugin: Planned }) {
  const { permission_change: change, from_version: from } = plugin
  const kept = plugin.access.filter(item => from === null || !item.is_new)
  const added = plugin.access.filter(item => from !== null && item.is_new)
  const contributes = Object.entries(plugin.contributes).map(([slot, what]) => {
    const names = Array.isArray(what) ? what : Object.keys(Object(what) as object)
    return `${slot.replaceAll('_', ' ')}: ${names.join(', ')}`
  })
  return (
    <Card
      title={plugin.name}
      actions={<Badge tone="accent">{from === null ? plugin.version : `${from} → ${plugin.version}`}</Badge>}
    >
      <p className="pane-in">{plugin.description || 'The package has no description.'}</p>
      <Facts
        facts={[
          ['Runs', RUNS[plugin.isolation] ?? plugin.isolation],
          ['Adds', contributes.join('; ') || 'nothing'],
          ['Answers', plugin.routes.length > 0 && <Sentences texts={plugin.routes} />],
          ['Checks', plugin.checks.length > 0 && <Sentences texts={plugin.checks} />],
          ['Shows', plugin.pages.length > 0 && <Sentences texts={plugin.pages} />],
          ['Its pages', aboutPages(plugin.contributes.console_pages)],
          [from === null ? 'May' : 'May, as before', kept.length > 0 && <AccessList key="kept" access={kept} />],
          ['New permissions', added.length > 0 && <AccessList access={added} />],
          ['No longer', change.removed.length > 0 && <PermissionList permissions={change.removed} tone="ok" />],
          ['Needs settings', plugin.missing_settings.length > 0 && plugin.missing_settings.join(', ')],
          ['Install scripts', plugin.install_scripts.length > 0 && `${plugin.install_scripts.join(', ')}: they do not run`],
          ['Dependencies', plugin.packages.length > 0 && <Dependencies plugin={plugin} />],
          [
            'Checksum',
            <code key="integrity" className="wrap">
              {plugin.integrity}
            </code>,
          ],
        ]}
      />
    </Card>
  )
}

/** What the plugin can do: wide permissions come first, and are marked. */
const AccessList = ({ access }: { readonly access: Planned['access'] }) => (
  <ul className="plain-list sentences">
    {access.map(({ text, is_wide: isWide }) => (
      <li key={text}>
        {isWide && <Badge tone="bad">wide</Badge>} {visible(text, LONGEST_SENTENCE)}
      </li>
    ))}
  </ul>
)

const Sentences = ({ texts }: { readonly texts: readonly string[] }) => (
  <ul className="plain-list sentences">
    {texts.map(text => (
      <li key={text}>{visible(text, LONGEST_SENTENCE)}</li>
    ))}
  </ul>
)

const LONGEST_SENTENCE = 2_000

const PermissionList = ({ permissions, tone }: { readonly permissions: readonly string[]; readonly tone: Tone }) => (
  <span className="names">
    {permissions.map(permission => (
      <Badge key={permission} tone={tone}>
        {permission}
      </Badge>
    ))}
  </span>
)

const Dependencies = ({ plugin: { packages } }: { readonly plugin: Planned }) => (
  <details>
    <summary>{packages.length}</summary>
    <ul className="plain-list small">
      {packages.map(({ name, version }) => (
        <li key={`${name}@${version}`}>
          {name} {version}
        </li>
      ))}
    </ul>
  </details>
)

const ENDED: readonly Job['state'][] = ['completed', 'failed', 'cancelled']
const POLL_MS = 1_000

/** The job of a change: what it does now, and how it ended. It goes on if the page is closed. */
export function ChangeView({ job: id }: { readonly job: string }) {
  const again = useAgain(['plugins'], ['tools'], ['change', id])
  const job = useQuery({
    queryKey: ['change', id],
    queryFn: ({ signal }) => client.get('/api/v1/jobs/{id}', { path: { id }, signal }),
    // its end reloads the server, which can lose the event
    refetchInterval: ({ state }) => (state.data && ENDED.includes(state.data.state) ? false : POLL_MS),
  })
  const log = useQuery({
    queryKey: ['change', id, 'log'],
    queryFn: async ({ signal }) => (await client.get('/api/v1/jobs/{id}/log', { path: { id }, signal })).entries,
    refetchInterval: () => (job.data && ENDED.includes(job.data.state) ? false : POLL_MS),
  })
  const state = job.data?.state
  const isOver = state !== undefined && ENDED.includes(state)
  useEffect(() => {
    if (isOver) void again()
    // oxlint-disable-next-line react/exhaustive-deps -- once, when it ends
  }, [isOver])
  const { refetch } = job
  useEffect(() => onEvents(events => events.some(({ type }) => /plugin_|job_/.test(type)) && void refetch()), [refetch])
  if (!job.data) return job.error ? <Failure error={job.error} onRetry={() => void job.refetch()} /> : <Loading rows={5} />
  return (
    <>
      <ItemHead
        title="Change of the plugins"
        back={<Back change={{ change: undefined }} />}
        badge={<StateBadge job={job.data} />}
      />
      <div className="reader-scroll">
        <div className="pane">
          <Outcome job={job.data} />
          <Steps label="Steps">
            {(log.data ?? []).map(({ message, at }, index, all) => (
              <Step
                key={`${at} ${message}`}
                state={index < all.length - 1 || state === 'completed' ? 'ok' : isOver ? 'bad' : 'running'}
                name={message}
              />
            ))}
          </Steps>
        </div>
      </div>
    </>
  )
}

const STATES: Readonly<Record<Job['state'], readonly [Tone, string]>> = {
  queued: ['plain', 'waiting'],
  running: ['accent', 'running'],
  completed: ['ok', 'done'],
  failed: ['bad', 'failed'],
  cancelled: ['plain', 'cancelled'],
}

function StateBadge({ job: { state, error } }: { readonly job: Job }) {
  const [tone, word] = STATES[state]
  return <Badge tone={tone}>{error?.details.rolled_back === true ? 'rolled back' : word}</Badge>
}

function Outcome({ job: { state, error } }: { readonly job: Job }) {
  if (state === 'completed')
    return (
      <p className="note" role="status">
        The server has loaded the change. <SearchLink change={{ change: undefined, id: undefined }}>Show the plugins</SearchLink>
      </p>
    )
  if (!error) return <p className="muted">The change goes on if you leave this page.</p>
  return (
    <>
      {error.details.rolled_back === true && (
        <p className="note note-warn" role="status">
          The server cannot start with the change, so svc has restored the former plugins. Nothing has changed.
        </p>
      )}
      <Failure error={Object.assign(new Error(error.message), { code: error.code })} />
    </>
  )
}

/** Changes of an installed plugin. Each shows its plan before anything happens. */
export function PluginButtons({ plugin: { name, installed, origin } }: { readonly plugin: Detail }) {
  const [action, setAction] = useState<Plan['action']>()
  const actions: readonly (readonly [Plan['action'], string])[] = [
    ...(origin.kind === 'registry' ? [['update', 'Update'] as const] : []),
    ...(installed && installed.former_version !== null ? [['rollback', `Return to ${installed.former_version}`] as const] : []),
    installed?.enabled ? ['disable', 'Disable'] : ['enable', 'Enable'],
    ['uninstall', 'Uninstall'],
  ]
  return (
    <>
      {actions.map(([value, text]) => (
        <button
          key={value}
          type="button"
          className={value === 'uninstall' ? 'button button-bad' : 'button'}
          onClick={() => setAction(value)}
        >
          {text}
        </button>
      ))}
      {action && <PlanDialog action={action} name={name} onClose={() => setAction(undefined)} />}
    </>
  )
}

interface PlanDialogProps {
  readonly action: Plan['action']
  readonly name: string
  readonly onClose: () => void
}

function PlanDialog({ action, name, onClose }: PlanDialogProps) {
  const plan = useQuery({
    queryKey: ['plan', action, name],
    gcTime: 0,
    staleTime: Number.POSITIVE_INFINITY,
    retry: false,
    queryFn: () => makePlan({ action, name }),
  })
  return (
    <Panel title={`${action.charAt(0).toUpperCase()}${action.slice(1)} ${name}`} onClose={onClose}>
      {plan.isPending && <Loading rows={3} />}
      {plan.error && (
        <>
          <Failure error={plan.error} onRetry={() => void plan.refetch()} />
          <Buttons onClose={onClose} />
        </>
      )}
      {plan.data && <Consent plan={plan.data} onCancel={onClose} />}
      {plan.data?.is_empty && action === 'update' && <Empty title="This is the newest version" />}
    </Panel>
  )
}
