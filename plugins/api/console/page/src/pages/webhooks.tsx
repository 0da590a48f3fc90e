import { useQuery } from '@tanstack/react-query'
import type { BodyOf, Schemas } from '@svc/client'
import { type FormEvent, useState } from 'react'
import { Chips, SearchLink, Tabs } from '../address.tsx'
import { client, textIn } from '../api.ts'
import { useFreshening } from '../fresh.ts'
import { Back, filtersOf, ListPage, ListStates, Search, useCursorList } from '../list.tsx'
import { Action, Buttons, Facts, Panel } from '../parts.tsx'
import { ItemHead, Problem, Secret, Stale, useAgain, useChange, useItems, withWords } from '../records.tsx'
import { webhooks } from '../router.tsx'
import { Badge, durationOf, Empty, Failure, Loading, Time, type Tone } from '../states.tsx'
import { type Column, Table } from '../table.tsx'

type Webhook = Schemas['Webhook']
type Delivery = Schemas['WebhookDelivery']
type AddBody = BodyOf<'post', '/api/v1/webhooks'>

export function Webhooks() {
  const { q, id } = webhooks.useSearch()
  useFreshening({ key: ['webhooks'], isAbout: ({ type }) => /webhook_/.test(type) })
  const all = useItems(['webhooks'], async signal => (await client.get('/api/v1/webhooks', { signal })).webhooks)
  const list = withWords(all, q, ({ name, url, types }) => `${name} ${url} ${types.join(' ')}`)
  return (
    <ListPage
      title="Webhooks"
      actions={<Adding isFirst={all.items.length === 0} />}
      filters={<Search label="Search webhooks" />}
      list={list}
      keyOf={webhook => webhook.id}
      entry={webhook => <Entry webhook={webhook} />}
      select={webhook => ({ id: webhook.id, tab: undefined, state: undefined })}
      isSelected={webhook => webhook.id === id}
      empty={
        q === undefined ? (
          <Empty title="No webhooks">
            Add one to send the events of the server to another program. <KeyNeeded />
          </Empty>
        ) : (
          <Empty title="Nothing found">No webhook is like that.</Empty>
        )
      }
      hasSelection={id !== undefined}
      detail={
        id === undefined ? (
          <Empty title="Select a webhook">Its settings and its deliveries appear here.</Empty>
        ) : (
          <WebhookView key={id} id={id} />
        )
      }
    />
  )
}

const nameOf = ({ name, url }: Webhook) => name || url.replace(/^https?:\/\//, '')
const StateBadge = ({ enabled, disabled_reason: reason }: Pick<Webhook, 'enabled' | 'disabled_reason'>) =>
  enabled ? <Badge tone="ok">enabled</Badge> : <Badge tone={reason === null ? 'plain' : 'bad'}>disabled</Badge>

const Entry = ({ webhook }: { readonly webhook: Webhook }) => (
  <>
    <span className="row spread">
      <span className="list-name clip grow">{nameOf(webhook)}</span>
      <StateBadge {...webhook} />
    </span>
    <span className="list-facts">
      <span className="clip">{webhook.types.length === 0 ? 'all events' : webhook.types.join(', ')}</span>
    </span>
  </>
)

/** The server cannot say whether it has a key before it makes the first secret. */
const KeyNeeded = () => (
  <>
    The server signs deliveries, so it needs a key for secrets: <code>secrets.key_file</code> or <code>SVC_SECRETS_KEY</code>.
  </>
)

function Adding({ isFirst }: { readonly isFirst: boolean }) {
  const [isOpen, setOpen] = useState(false)
  return (
    <>
      <button type="button" className="button" onClick={() => setOpen(true)}>
        Add a webhook
      </button>
      {isOpen && <Edit isFirst={isFirst} onClose={() => setOpen(false)} />}
    </>
  )
}

const typesIn = (text: string) => text.split(/[\s,]+/).filter(Boolean)

const WebhookFields = ({ webhook }: { readonly webhook: Webhook | undefined }) => (
  <>
    <label className="field">
      <span>URL</span>
      <input
        className="input"
        name="url"
        type="url"
        required
        maxLength={2_000}
        defaultValue={webhook?.url}
        placeholder="https://receiver.example/svc"
        autoFocus
      />
    </label>
    <label className="field">
      <span>Name (optional)</span>
      <input className="input" name="name" maxLength={100} defaultValue={webhook?.name} />
    </label>
    <label className="field">
      <span>Events (optional)</span>
      <input
        className="input"
        name="types"
        defaultValue={webhook?.types.join(' ')}
        placeholder="turn_completed run_*"
        spellCheck={false}
      />
      <span className="muted">Types, with blanks between them. Without any: all events.</span>
    </label>
    <label className="check">
      <input type="checkbox" name="enabled" defaultChecked={webhook?.enabled ?? true} />
      <span>Deliver events</span>
    </label>
  </>
)

interface EditProps {
  readonly webhook?: Webhook
  /** There is no webhook yet, so the server may lack a key. */
  readonly isFirst?: boolean
  readonly onClose: () => void
}

/** Adds a webhook, or changes one. A new one has a secret, which is shown once. */
function Edit({ webhook, isFirst = false, onClose }: EditProps) {
  const [secret, setSecret] = useState<string>()
  const save = useChange(
    async (body: AddBody) =>
      webhook
        ? client.patch('/api/v1/webhooks/{id}', { path: { id: webhook.id }, body })
        : client.post('/api/v1/webhooks', { body }),
    { keys: [['webhooks']], onDone: ({ secret: made }) => (made === undefined ? onClose() : setSecret(made)) }
  )
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault()
    const data = new FormData(event.currentTarget)
    save.run({
      url: textIn(data, 'url'),
      name: textIn(data, 'name'),
      types: typesIn(textIn(data, 'types')),
      enabled: data.has('enabled'),
    })
  }
  if (secret !== undefined)
    return (
      <Panel title="The secret of the webhook" onClose={onClose}>
        <p>The receiver checks the signature of each delivery with it.</p>
        <Secret name="Secret" value={secret} />
        <Buttons onClose={onClose} />
      </Panel>
    )
  return (
    <Panel title={webhook ? 'Change the webhook' : 'Add a webhook'} onClose={onClose}>
      <form className="stack" onSubmit={submit}>
        {isFirst && (
          <p className="note">
            <KeyNeeded />
          </p>
        )}
        <WebhookFields webhook={webhook} />
        <Problem error={save.error} />
        <Buttons onClose={onClose}>
          <button type="submit" className="button button-primary" disabled={save.isRunning}>
            {save.isRunning ? 'Saving …' : 'Save'}
          </button>
        </Buttons>
      </form>
    </Panel>
  )
}

function WebhookView({ id }: { readonly id: string }) {
  const { tab } = webhooks.useSearch()
  const query = useQuery({
    queryKey: ['webhooks', id],
    queryFn: ({ signal }) => client.get('/api/v1/webhooks/{id}', { path: { id }, signal }),
  })
  const { data, error, refetch } = query
  if (error && !data) return <Failure error={error} onRetry={() => void refetch()} />
  if (!data) return <Loading rows={6} />
  return (
    <>
      <ItemHead title={nameOf(data)} back={<Back />} facts={data.url} badge={<StateBadge {...data} />}>
        <Changes webhook={data} />
      </ItemHead>
      <Stale query={query} />
      <Tabs
        label="Views of the webhook"
        values={[
          [undefined, 'Deliveries'],
          ['settings', 'Settings'],
        ]}
      />
      {tab === 'settings' ? <Settings webhook={data} /> : <Deliveries id={id} />}
    </>
  )
}

function Changes({ webhook }: { readonly webhook: Webhook }) {
  const [isOpen, setOpen] = useState(false)
  const again = useAgain(['webhooks'])
  const remove = async () => {
    await client.delete('/api/v1/webhooks/{id}', { path: { id: webhook.id } })
    await again()
  }
  return (
    <>
      <button type="button" className="button" onClick={() => setOpen(true)}>
        Change
      </button>
      <Action
        label="Remove"
        kind="bad"
        act={remove}
        confirm={{ title: `Remove ${nameOf(webhook)}?`, text: 'Deliveries that wait are not sent any more.' }}
      />
      {isOpen && <Edit webhook={webhook} onClose={() => setOpen(false)} />}
    </>
  )
}

function Settings({ webhook }: { readonly webhook: Webhook }) {
  const [secret, setSecret] = useState<string>()
  const rotate = async () => {
    const changed = await client.patch('/api/v1/webhooks/{id}', { path: { id: webhook.id }, body: { rotate_secret: true } })
    setSecret(changed.secret)
  }
  return (
    <div className="reader-scroll">
      <div className="pane">
        {webhook.disabled_reason !== null && <p className="note note-bad">svc disabled it: {webhook.disabled_reason}</p>}
        <div className="card">
          <Facts
            facts={[
              ['URL', webhook.url],
              ['Events', webhook.types.join(', ') || 'all'],
              ['Added', <Time key="added" at={webhook.created_at} />],
              ['Changed', <Time key="changed" at={webhook.updated_at} />],
            ]}
          />
        </div>
        <div className="row">
          <Action
            label="New secret"
            act={rotate}
            confirm={{ title: 'Make a new secret?', text: 'The former secret signs deliveries, too, for 24 hours.' }}
          />
        </div>
        {secret !== undefined && (
          <Panel title="The new secret" onClose={() => setSecret(undefined)}>
            <Secret name="Secret" value={secret} />
            <Buttons onClose={() => setSecret(undefined)} />
          </Panel>
        )}
      </div>
    </div>
  )
}

const STATES = [
  [undefined, 'All'],
  ['queued', 'Waiting'],
  ['completed', 'Delivered'],
  ['failed', 'Dead letters'],
] as const
const TONES: Readonly<Record<Delivery['state'], Tone>> = {
  queued: 'plain',
  running: 'accent',
  completed: 'ok',
  failed: 'bad',
  cancelled: 'plain',
}

/** The columns of the deliveries of a webhook. */
const columnsOf = (id: string): readonly Column<Delivery>[] => [
  { name: 'Event', width: 'minmax(0, 1.3fr)', cell: delivery => delivery.event_type },
  { name: 'State', width: '6.5rem', cell: delivery => <Badge tone={TONES[delivery.state]}>{delivery.state}</Badge> },
  {
    name: 'Attempts',
    width: '5rem',
    isNumber: true,
    isWide: true,
    cell: delivery => `${delivery.attempts} of ${delivery.max_attempts}`,
  },
  {
    name: 'When',
    width: '6rem',
    isWide: true,
    cell: delivery => delivery.created_at && <Time at={delivery.created_at} />,
  },
  { name: 'Problem', width: 'minmax(0, 1.5fr)', cell: ({ error }) => error && <span title={error}>{error}</span> },
  {
    name: 'Actions',
    isTitleHidden: true,
    width: '5.5rem',
    cell: delivery => delivery.state === 'failed' && <Again id={id} delivery={delivery.id} />,
  },
]

function Deliveries({ id }: { readonly id: string }) {
  const { state: asked } = webhooks.useSearch()
  const state = STATES.map(([value]) => value).find(value => value === asked)
  const list = useCursorList({
    key: ['webhooks', id, 'deliveries', state],
    read: (from, signal) =>
      client.get('/api/v1/webhooks/{id}/deliveries', {
        path: { id },
        query: { limit: 50, ...filtersOf({ state }, 'state'), ...from },
        signal,
      }),
    itemsOf: page => page.deliveries,
  })
  return (
    <>
      <div className="row spread pad">
        <Chips label="States" name="state" values={STATES} />
        <Testing id={id} />
      </div>
      <ListStates
        list={list}
        empty={
          state === undefined ? (
            <Empty title="No deliveries yet">Send a test event, or wait for one.</Empty>
          ) : (
            <Empty title="No such delivery">
              <SearchLink change={{ state: undefined }}>Show all</SearchLink>
            </Empty>
          )
        }
      />
      {list.items.length > 0 && (
        <Table name="Deliveries, newest first" items={list.items} keyOf={delivery => delivery.id} columns={columnsOf(id)} />
      )}
    </>
  )
}

function Again({ id, delivery }: { readonly id: string; readonly delivery: string }) {
  const again = useAgain(['webhooks'])
  const retry = async () => {
    await client.post('/api/v1/webhooks/{id}/deliveries/{delivery}/retry', { path: { id, delivery } })
    await again()
  }
  return <Action label="Send again" kind="quiet" act={retry} />
}

function Testing({ id }: { readonly id: string }) {
  const test = useChange(() => client.post('/api/v1/webhooks/{id}/test', { path: { id } }))
  const { result } = test
  return (
    <div className="row" role="status">
      {result && (
        <Badge tone={result.delivered ? 'ok' : 'bad'}>
          {result.delivered ? `delivered, ${result.status}` : (result.error ?? `refused, ${result.status}`)} in{' '}
          {durationOf(result.duration_ms)}
        </Badge>
      )}
      <Problem error={test.error} />
      <button type="button" className="button" disabled={test.isRunning} onClick={() => test.run()}>
        {test.isRunning ? 'Sending …' : 'Send a test'}
      </button>
    </div>
  )
}
