import { useQuery } from '@tanstack/react-query'
import type { Schemas } from '@svc/client'
import { lazy, Suspense } from 'react'
import { Chips, SearchLink, Tabs } from '../address.tsx'
import { allows, client, session } from '../api.ts'
import { RELOADED_MS, useFreshening } from '../fresh.ts'
import { Back, ListPage, Search } from '../list.tsx'
import { Card, Facts } from '../parts.tsx'
import { ItemHead, RUNS, shortName, Stale, useItems, withWords } from '../records.tsx'
import { PluginSet } from '../plugin-set.tsx'
import { plugins } from '../router.tsx'
import { Badge, Count, durationOf, Empty, Failure, Loading, type Tone } from '../states.tsx'
import { useValue } from '../value.ts'

const Install = lazy(() => import('../plugin-change.tsx').then(({ Install }) => ({ default: Install })))
const PluginButtons = lazy(() => import('../plugin-change.tsx').then(({ PluginButtons }) => ({ default: PluginButtons })))
const ChangeView = lazy(() => import('../plugin-change.tsx').then(({ ChangeView }) => ({ default: ChangeView })))

type Listed = Schemas['Plugin']
type Detail = Schemas['PluginDetail']

const TONES: Readonly<Record<Listed['state'], Tone>> = {
  running: 'ok',
  restarting: 'warn',
  quarantined: 'bad',
  failed: 'bad',
  disabled: 'plain',
  idle: 'plain',
}

const FILTERS = [
  [undefined, 'All'],
  ['installed', 'Installed'],
  ['refused', 'Refused'],
  ['bad', 'Not running'],
] as const

const refusalsOf = ({ refusals }: Pick<Listed, 'refusals'>) => Object.values(refusals).reduce((sum, count) => sum + count, 0)

function isShown(plugin: Listed, filter: string | undefined): boolean {
  if (filter === 'installed') return !['svc', 'configuration'].includes(plugin.origin.kind)
  if (filter === 'refused') return refusalsOf(plugin) > 0
  return filter !== 'bad' || plugin.state !== 'running'
}

export function Plugins() {
  const { q, filter, id, change } = plugins.useSearch()
  useFreshening({ key: ['plugins'], isAbout: ({ type }) => /plugin_|reload/.test(type), againMs: RELOADED_MS })
  const all = useItems(['plugins'], async signal => (await client.get('/api/v1/plugins', { signal })).plugins)
  const known = withWords(all, q, ({ name, kind }) => `${name} ${kind}`)
  const list = { ...known, items: known.items.filter(plugin => isShown(plugin, filter)) }
  const current = useValue(session)
  const mayChange = current.state === 'in' && allows(current.me, 'admin')
  return (
    <ListPage
      title="Plugins"
      actions={
        mayChange && (
          <SearchLink
            change={{ change: 'install', id: undefined, tab: undefined }}
            className="button"
            isCurrent={change !== undefined}
          >
            Install
          </SearchLink>
        )
      }
      filters={
        <>
          <Search label="Search plugins" />
          <Chips label="Plugins" name="filter" values={FILTERS} />
          <PluginSet />
        </>
      }
      list={list}
      keyOf={({ name }) => name}
      entry={plugin => <Entry plugin={plugin} />}
      select={({ name }) => ({ id: name, tab: undefined, change: undefined })}
      isSelected={({ name }) => name === id}
      empty={<Empty title="Nothing found">No plugin is like that.</Empty>}
      hasSelection={id !== undefined || change !== undefined}
      detail={
        <Suspense fallback={<Loading rows={6} />}>
          <Detail id={id} change={mayChange ? change : undefined} mayChange={mayChange} />
        </Suspense>
      }
    />
  )
}

interface DetailProps {
  readonly id: string | undefined
  /** `install`, or the id of the job that changes the plugins. */
  readonly change: string | undefined
  readonly mayChange: boolean
}

function Detail({ id, change, mayChange }: DetailProps) {
  if (change === 'install') return <Install />
  if (change !== undefined) return <ChangeView key={change} job={change} />
  if (id === undefined)
    return <Empty title="Select a plugin">What it may do, what it costs and what it was refused appear here.</Empty>
  return <PluginView key={id} name={id} mayChange={mayChange} />
}

const Entry = ({ plugin }: { readonly plugin: Listed }) => {
  const refused = refusalsOf(plugin)
  return (
    <>
      <span className="row spread">
        <span className="list-name clip grow">{shortName(plugin.name)}</span>
        {refused > 0 && <Badge tone="warn">{refused} refused</Badge>}
        {plugin.state !== 'running' && <Badge tone={TONES[plugin.state]}>{plugin.state}</Badge>}
      </span>
      <span className="list-facts">
        <span>{plugin.version}</span>
        <span className="clip">{[plugin.kind, plugin.isolation].filter(Boolean).join(', ')}</span>
      </span>
    </>
  )
}

function PluginView({ name, mayChange }: { readonly name: string; readonly mayChange: boolean }) {
  const { tab } = plugins.useSearch()
  const query = useQuery({
    queryKey: ['plugins', name],
    queryFn: ({ signal }) => client.get('/api/v1/plugins/{name}', { path: { name }, signal }),
  })
  const { data, error, refetch } = query
  if (error && !data) return <Failure error={error} onRetry={() => void refetch()} />
  if (!data) return <Loading rows={6} />
  return (
    <>
      <ItemHead
        title={shortName(data.name)}
        back={<Back />}
        facts={`${data.version}, ${[data.kind, data.origin.spec ?? `from ${data.origin.kind}`].filter(Boolean).join(', ')}`}
        badge={<Badge tone={TONES[data.state]}>{data.state}</Badge>}
      >
        {mayChange && data.installed && <PluginButtons plugin={data} />}
      </ItemHead>
      <Stale query={query} />
      <Tabs
        label="Views of the plugin"
        values={[
          [undefined, 'Permissions'],
          ['costs', 'Costs'],
          ['refusals', refusalsOf(data) > 0 ? `Refused ${refusalsOf(data)}` : 'Refused'],
          ['adds', 'What it adds'],
        ]}
      />
      <div className="reader-scroll">
        <div className="pane">
          {data.error && <Failure error={Object.assign(new Error(data.error.message), { code: data.error.code })} />}
          <View plugin={data} tab={tab} />
        </div>
      </div>
    </>
  )
}

function View({ plugin, tab }: { readonly plugin: Detail; readonly tab: string | undefined }) {
  if (tab === 'costs') return <Costs plugin={plugin} />
  if (tab === 'refusals') return <Refusals plugin={plugin} />
  if (tab === 'adds') return <Adds plugin={plugin} />
  return <Permissions plugin={plugin} />
}

const PERMISSION_WORDS: Readonly<Record<string, string>> = {
  network: 'connects to',
  env: 'reads the variables',
  optional_env: 'reads the variables, if they are set',
  read: 'reads the files',
  write: 'writes the files',
  services: 'uses the services',
  hooks: 'takes part in',
  console: 'with its pages, sends',
  public_routes: 'serves without a login',
  credential_headers: 'sees the headers',
}

function Permissions({ plugin: { permissions, isolation, installed } }: { readonly plugin: Detail }) {
  const all = Object.entries(permissions).filter(([, names]) => names.length > 0)
  return (
    <>
      <p>
        It runs {RUNS[isolation] ?? isolation}.{installed?.trusted && ' A person has trusted it.'}
      </p>
      <Card title="Permissions">
        {all.length === 0 && <p className="facts-none">None: it uses nothing of the machine and of the server.</p>}
        <Facts
          facts={all.map(([kind, names]) => [
            PERMISSION_WORDS[kind] ?? kind,
            <span key={kind} className="names">
              {names.map(name => (
                <code key={name}>{name}</code>
              ))}
            </span>,
          ])}
        />
      </Card>
    </>
  )
}

const mebibytes = (bytes: number) => `${(bytes / 1_048_576).toFixed(1)} MiB`

function Costs({ plugin: { accounting, process, instances } }: { readonly plugin: Detail }) {
  const { calls, errors, ms } = accounting
  return (
    <>
      <Card title="Calls of its hooks and contributions">
        <Facts
          facts={[
            ['Calls', <Count key="calls" value={calls} />],
            ['Errors', <Count key="errors" value={errors} />],
            ['Time, without streams', durationOf(ms)],
            ['Time of a call', calls > 0 && durationOf(ms / calls)],
          ]}
        />
      </Card>
      {process && (
        <Card title="Its processes, of all workers">
          <Facts
            facts={[
              ['Memory', mebibytes(process.memory_bytes)],
              ['Time of the processor', durationOf(process.cpu_ms)],
              ['Restarts', process.restarts],
            ]}
          />
        </Card>
      )}
      {instances.length > 0 && (
        <Card title="Instances">
          <Facts
            facts={instances.map(({ name, state }) => [
              name,
              <Badge key={name} tone={TONES[state]}>
                {state}
              </Badge>,
            ])}
          />
        </Card>
      )}
    </>
  )
}

function Refusals({ plugin: { refusals, isolation } }: { readonly plugin: Detail }) {
  const all = Object.entries(refusals).filter(([, count]) => count > 0)
  if (all.length > 0)
    return (
      <Card title="What it tried without a permission">
        <Facts facts={all.map(([kind, count]) => [kind, <Count key={kind} value={count} />])} />
      </Card>
    )
  return isolation === 'in-process' ? (
    <Empty title="Nothing is refused">It runs in the process of the server, which has all rights.</Empty>
  ) : (
    <Empty title="Nothing was refused">It has kept to its permissions.</Empty>
  )
}

function Adds({ plugin: { added, provides, requires } }: { readonly plugin: Detail }) {
  const all = Object.entries(added).filter(([, names]) => names.length > 0)
  return (
    <>
      {all.length === 0 && <Empty title="It adds nothing" />}
      {all.map(([slot, names]) => (
        <Card key={slot} title={slot.replaceAll('_', ' ')}>
          <p className="names pane-in">
            {names.map(name => (
              <code key={name}>{name}</code>
            ))}
          </p>
        </Card>
      ))}
      <div className="card">
        <Facts
          facts={[
            ['Provides', provides.join(', ') || 'no service'],
            ['Requires', requires.join(', ') || 'no service'],
          ]}
        />
      </div>
    </>
  )
}
