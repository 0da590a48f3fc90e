import { type UseQueryResult, useQuery } from '@tanstack/react-query'
import type { Schemas } from '@svc/client'
import { lazy, type ReactNode, Suspense } from 'react'
import { Chips, SearchLink } from '../address.tsx'
import { allows, client, session } from '../api.ts'
import { useFreshening } from '../fresh.ts'
import { Back, ListHead, moveFocus, Search } from '../list.tsx'
import { useNarrow } from '../media.ts'
import { Json } from '../message.tsx'
import { Facts } from '../parts.tsx'
import { ItemHead, Problem, ReadProblem, useChange } from '../records.tsx'
import { configuration } from '../router.tsx'
import { Badge, Empty, Loading, type Tone } from '../states.tsx'
import { useValue } from '../value.ts'

const loadEdit = () => import('../config-edit.tsx')
const EditValue = lazy(() => loadEdit().then(({ EditValue }) => ({ default: EditValue })))
const OverriddenValue = lazy(() => loadEdit().then(({ OverriddenValue }) => ({ default: OverriddenValue })))

type Config = Schemas['Config']
type Value = Schemas['ConfigValue']

const SOURCES = [
  [undefined, 'All'],
  ['set', 'Set by you'],
  ['default', 'Default'],
  ['unused', 'Unused'],
] as const

const isShown = (
  value: Value,
  { q, source, section }: { readonly q?: string; readonly source?: string; readonly section?: string }
) =>
  (section === undefined || value.keys[0] === section) &&
  (q === undefined || `${value.key} ${textOf(value.value)}`.toLowerCase().includes(q.toLowerCase())) &&
  (source === undefined ||
    (source === 'unused'
      ? value.unused
      : source === 'default'
        ? value.source.kind === 'default'
        : value.source.kind !== 'default'))

const textOf = (value: unknown) => (typeof value === 'string' ? value : (JSON.stringify(value) ?? ''))

/** The configuration with its version, which a change names. */
interface ReadConfig {
  readonly config: Config
  readonly etag: string
}

async function readConfig(signal: AbortSignal): Promise<ReadConfig> {
  const { data, headers } = await client.request('get', '/api/v1/config', { signal })
  return { config: data, etag: headers.get('etag') ?? '' }
}

export function Configuration() {
  const search = configuration.useSearch()
  const { id } = search
  useFreshening({ key: ['config'], isAbout: ({ type }) => /config_|reload|profile_/.test(type) })
  const query = useQuery({ queryKey: ['config'], queryFn: ({ signal }) => readConfig(signal) })
  const { data } = query
  const current = useValue(session)
  const mayChange = current.state === 'in' && allows(current.me, 'admin')
  const selected = data?.config.values.find(({ key }) => key === id)
  const shown = (data?.config.values ?? []).filter(value => isShown(value, search))
  const isBeside = !useNarrow() && id === undefined
  return (
    <div className={`halves ${id === undefined ? 'halves-list' : 'halves-read'}`}>
      <div className="list-pane">
        <ListHead
          title="Configuration"
          actions={mayChange && <Reload />}
          filters={
            <>
              <Search label="Search keys and values" />
              <Chips label="Sources" name="source" values={SOURCES} />
            </>
          }
        />
        <Found query={query} current={id} values={shown} empty={isBeside ? null : NOTHING} />
      </div>
      <div className="reader column">
        {id !== undefined && (
          // a narrow window does not show the keys, which can have failed
          <div className="only-narrow">
            <ReadProblem query={query} />
          </div>
        )}
        {selected && data ? (
          <ValueView key={selected.key} value={selected} config={data.config} etag={data.etag} mayChange={mayChange} />
        ) : (
          <NoValue isEmpty={shown.length === 0} isBeside={isBeside} query={query} />
        )}
      </div>
    </div>
  )
}

const NOTHING = <Empty title="Nothing found">No key is like that.</Empty>

interface NoValueProps {
  readonly query: UseQueryResult<ReadConfig>
  readonly isEmpty: boolean
  readonly isBeside: boolean
}

/** The place of the selected key while there is none. */
function NoValue({ query: { data, error }, isEmpty, isBeside }: NoValueProps) {
  if (isBeside && isEmpty) return data && NOTHING
  return !error && <Empty title="Select a key">Its value, where it comes from, and how to change it appear here.</Empty>
}

interface FoundProps {
  readonly query: UseQueryResult<ReadConfig>
  readonly values: readonly Value[]
  readonly current: string | undefined
  /** Shown when the search finds nothing. */
  readonly empty: ReactNode
}

/** The keys that the search finds, and how it goes with reading them. */
function Found({ query, values, current, empty }: FoundProps) {
  const { data, error } = query
  return (
    <>
      {data?.config.file.is_pending && (
        <p className="note note-warn note-flat">The file has changes that are not in force. Reload the server to load them.</p>
      )}
      <ReadProblem query={query} />
      {!data && !error && <Loading rows={8} />}
      {data && values.length === 0 && empty}
      {values.length > 0 && <Keys values={values} current={current} />}
    </>
  )
}

/** Keys below the section that they belong to. */
function Keys({ values, current }: { readonly values: readonly Value[]; readonly current: string | undefined }) {
  const sections = Map.groupBy(values, ({ keys }) => keys[0] ?? '')
  return (
    <div className="list" onKeyDown={moveFocus}>
      {[...sections].map(([section, members]) => (
        <section key={section} aria-label={section}>
          <h2 className="group-title muted small">{section}</h2>
          <ul className="plain-list" aria-label={`Keys of ${section}`}>
            {members.map(value => (
              <li key={value.key} className="list-row">
                <SearchLink change={{ id: value.key }} className="list-item" isCurrent={value.key === current}>
                  <Entry value={value} />
                </SearchLink>
              </li>
            ))}
          </ul>
        </section>
      ))}
    </div>
  )
}

const TONES: Readonly<Record<Value['source']['kind'], Tone>> = {
  default: 'plain',
  installed: 'plain',
  home: 'accent',
  file: 'accent',
  environment: 'warn',
  flags: 'warn',
}

const sourceText = ({ kind, name }: Value['source']) => (kind === 'default' ? 'default' : (name ?? kind))

const Entry = ({ value: { keys, value, source, unused } }: { readonly value: Value }) => (
  <>
    <span className="row spread">
      <code className="list-name clip grow">{keys.slice(1).join('.') || keys[0]}</code>
      {unused && <Badge tone="warn">unused</Badge>}
      {source.kind !== 'default' && <Badge tone={TONES[source.kind]}>{sourceText(source)}</Badge>}
    </span>
    <span className="list-match clip">{textOf(value)}</span>
  </>
)

interface ValueViewProps {
  readonly value: Value
  readonly config: Config
  readonly etag: string
  readonly mayChange: boolean
}

const SOURCE_WORDS: Readonly<Record<Value['source']['kind'], string>> = {
  default: 'svc: nothing else sets it',
  installed: 'an installed plugin',
  home: 'the file of the svc home',
  file: 'a configuration file',
  environment: 'a variable of the environment',
  flags: 'a flag of the command',
}

/** The sources that override the file of the svc home, which this page changes. */
const OVERRIDING: ReadonlySet<Value['source']['kind']> = new Set(['file', 'environment', 'flags'])

function ValueView({ value, config, etag, mayChange }: ValueViewProps) {
  const locked = config.file.locked ?? value.local
  return (
    <>
      <ItemHead
        title={value.key}
        isCode
        back={<Back />}
        facts={`from ${sourceText(value.source)}`}
        badge={<Badge tone={TONES[value.source.kind]}>{value.source.kind}</Badge>}
      />
      <div className="reader-scroll">
        <div className="pane">
          <Json value={value.value} label={`Value of ${value.key}`} />
          <div className="card">
            <Facts
              facts={[
                ['Comes from', SOURCE_WORDS[value.source.kind]],
                ['Named', value.source.name],
                ['Used', value.unused ? 'no running plugin uses it' : 'yes'],
              ]}
            />
          </div>
          {mayChange && locked !== null && <p className="note">It cannot be changed here: {locked}</p>}
          {mayChange && locked === null && (
            <Suspense fallback={<Loading rows={4} />}>
              {OVERRIDING.has(value.source.kind) ? (
                <OverriddenValue value={value} etag={etag} />
              ) : (
                // after a reload with another value, the form begins again
                <EditValue key={`${value.source.kind} ${JSON.stringify(value.value)}`} value={value} etag={etag} />
              )}
            </Suspense>
          )}
        </div>
      </div>
    </>
  )
}

/** Starts new workers from the current files. Says why if they cannot start: the old ones go on. */
function Reload() {
  const reload = useChange(() => client.post('/api/v1/reload', { timeoutMs: 120_000, retry: false }), { keys: [[]] })
  return (
    <div className="reload">
      <button type="button" className="button" disabled={reload.isRunning} onClick={() => reload.run()}>
        {reload.isRunning ? 'Reloading …' : 'Reload'}
      </button>
      <span role="status" className="muted small">
        {reload.result && 'New workers serve.'}
      </span>
      <Problem error={reload.error} />
    </div>
  )
}
