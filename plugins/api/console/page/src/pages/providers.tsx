import { useQuery } from '@tanstack/react-query'
import type { ReplyOf, Schemas } from '@svc/client'
import { allows, client, session } from '../api.ts'
import { useFreshening } from '../fresh.ts'
import { Back, ListPage, Search } from '../list.tsx'
import { Facts } from '../parts.tsx'
import { pricesOf } from '../price.ts'
import { ItemHead, Problem, Stale, useChange, useItems, withWords } from '../records.tsx'
import { providers } from '../router.tsx'
import { Badge, Count, durationOf, Empty, Failure, Loading, Time, type Tone } from '../states.tsx'
import { useValue } from '../value.ts'

type Listed = ReplyOf<'get', '/api/v1/providers'>['providers'][number]
type Detail = Schemas['ProviderDetail']
type Model = Schemas['ProviderModel']

export function Providers() {
  const { q, id } = providers.useSearch()
  useFreshening({ key: ['providers'], isAbout: ({ type }) => /provider_|model_|breaker/.test(type), everyMs: 3_000 })
  const all = useItems(['providers'], async signal => (await client.get('/api/v1/providers', { signal })).providers)
  const list = withWords(all, q, ({ name, models }) => `${name} ${models.join(' ')}`)
  return (
    <ListPage
      title="Providers"
      filters={<Search label="Search providers and models" />}
      list={list}
      keyOf={({ name }) => name}
      entry={provider => <Entry provider={provider} />}
      select={({ name }) => ({ id: name })}
      isSelected={({ name }) => name === id}
      empty={
        q === undefined ? (
          <Empty title="No providers">
            Set the key of one, such as <code>OPENAI_API_KEY</code>, and start the server again.
          </Empty>
        ) : (
          <Empty title="Nothing found">No provider has such a model.</Empty>
        )
      }
      hasSelection={id !== undefined}
      detail={
        id === undefined ? (
          <Empty title="Select a provider">Its models, prices, breakers and a test appear here.</Empty>
        ) : (
          <Provider key={id} name={id} />
        )
      }
    />
  )
}

const Entry = ({ provider: { name, models, features } }: { readonly provider: Listed }) => (
  <>
    <span className="list-name clip">{name}</span>
    <span className="list-facts">
      <span>
        {models.length} {models.length === 1 ? 'model' : 'models'}
      </span>
      <span className="clip">
        {[features.tool_calling && 'tools', features.streaming && 'streams', features.vision && 'images']
          .filter(Boolean)
          .join(', ')}
      </span>
    </span>
  </>
)

const stateOf = ({ healthy }: Detail): readonly [Tone, string] =>
  healthy === null ? ['plain', 'not asked yet'] : healthy ? ['ok', 'answers'] : ['bad', 'failing']

function Provider({ name }: { readonly name: string }) {
  const query = useQuery({
    queryKey: ['providers', name],
    queryFn: ({ signal }) => client.get('/api/v1/providers/{name}', { path: { name }, signal }),
  })
  const { data, error, refetch } = query
  const current = useValue(session)
  if (error && !data) return <Failure error={error} onRetry={() => void refetch()} />
  if (!data) return <Loading rows={6} />
  const [tone, word] = stateOf(data)
  return (
    <>
      <ItemHead
        title={data.name}
        back={<Back />}
        facts={data.requests === null ? undefined : `${data.requests} calls`}
        badge={<Badge tone={tone}>{word}</Badge>}
      />
      <Stale query={query} />
      <div className="reader-scroll">
        <div className="pane">
          {data.error !== null && <Failure error={new Error(data.error)} />}
          {data.models_error !== null && <Failure error={new Error(`The models cannot be listed: ${data.models_error}`)} />}
          {current.state === 'in' && allows(current.me, 'admin') && <Test provider={data} />}
          <Models provider={data} />
          <div className="card">
            <Facts
              facts={[
                ['Calls tools', data.features.tool_calling ? 'yes' : 'no'],
                ['Streams', data.features.streaming ? 'yes' : 'no'],
                ['Reads images', data.features.vision ? 'yes' : 'no'],
                ['Takes models that it does not list', data.open ? 'yes' : 'no'],
              ]}
            />
            <Facts
              facts={[
                [
                  'Further features',
                  data.features.supports.length > 0 && (
                    <span className="names">
                      {data.features.supports.map(feature => (
                        <code key={feature}>{feature}</code>
                      ))}
                    </span>
                  ),
                ],
              ]}
            />
          </div>
        </div>
      </div>
    </>
  )
}

/** A short message to one model. The provider bills it. */
function Test({ provider: { name, models, currency } }: { readonly provider: Detail }) {
  const test = useChange(
    (model: string) => client.post('/api/v1/providers/{name}/test', { path: { name }, body: model === '' ? {} : { model } }),
    { keys: [['providers']] }
  )
  const { result } = test
  return (
    <form
      className="card"
      aria-label="Test"
      onSubmit={event => {
        event.preventDefault()
        const model = new FormData(event.currentTarget).get('model')
        test.run(typeof model === 'string' ? model : '')
      }}
    >
      <div className="card-head">
        <h3 className="section-title">Test</h3>
        <div className="row">
          <label>
            <span className="visually-hidden">Model to test</span>
            <select className="select" name="model">
              {models.map(({ id }) => (
                <option key={id} value={id}>
                  {id}
                </option>
              ))}
            </select>
          </label>
          <button type="submit" className="button" disabled={test.isRunning}>
            {test.isRunning ? 'Asking …' : 'Send a short message'}
          </button>
        </div>
      </div>
      <div role="status">
        {!result && !test.error && (
          <p className="facts-none">The provider bills a few tokens{currency === null ? '' : `, in ${currency}`}.</p>
        )}
        {result?.success && (
          <Facts
            facts={[
              ['Result', <Badge key="ok" tone="ok">{`${result.model ?? name} answers`}</Badge>],
              ['First token', result.first_token_ms !== null && durationOf(result.first_token_ms)],
              ['Whole answer', durationOf(result.duration_ms)],
              ['Tokens', result.tokens_used && `${result.tokens_used.input} in, ${result.tokens_used.output} out`],
              ['Attempts', result.attempts],
            ]}
          />
        )}
      </div>
      {result?.error && <Problem error={Object.assign(new Error(result.error.error), { code: result.error.error_code })} />}
      <Problem error={test.error} />
    </form>
  )
}

const BREAKERS: Readonly<Record<Model['breaker'], readonly [Tone, string]>> = {
  closed: ['ok', 'closed'],
  half_open: ['warn', 'half open'],
  open: ['bad', 'open'],
}

function Models({ provider: { models, currency } }: { readonly provider: Detail }) {
  if (models.length === 0) return <Empty title="The provider lists no models" />
  const prices = pricesOf(models.map(({ price }) => price))
  return (
    <section className="card scroll-x" aria-label="Models" tabIndex={0}>
      <table className="grid">
        <thead>
          <tr>
            <th scope="col">Model</th>
            <th scope="col">Breaker</th>
            <th scope="col" className="number">
              Calls
            </th>
            <th scope="col" className="number">
              Failed
            </th>
            <th scope="col" className="number">
              First token
            </th>
            <th scope="col" className="number">
              Context
            </th>
            <th scope="col" className="number">
              Price in / out{currency === null ? '' : `, ${currency}`}
            </th>
          </tr>
        </thead>
        <tbody>
          {models.map((model, at) => (
            <ModelRow key={model.id} model={model} price={prices[at]!} />
          ))}
        </tbody>
      </table>
    </section>
  )
}

function ModelRow({ model, price }: { readonly model: Model; readonly price: string }) {
  const [tone, word] = BREAKERS[model.breaker]
  return (
    <tr>
      <th scope="row">
        {model.id}
        {model.aliases.length > 0 && <span className="muted"> {model.aliases.join(', ')}</span>}
        {model.last_error && (
          <span className="row-about">
            {model.last_error.message ?? model.last_error.kind}
            {model.last_error.at !== null && (
              <>
                {', '}
                <Time at={model.last_error.at} />
              </>
            )}
          </span>
        )}
      </th>
      <td>
        <Badge tone={tone}>{word}</Badge>
        {model.retry_at !== null && (
          <span className="muted small">
            {' '}
            until <Time at={model.retry_at} />
          </span>
        )}
      </td>
      <td className="number">
        <Count value={model.calls} />
      </td>
      <td className="number">
        <Count value={model.failures} />
      </td>
      <td className="number">{model.first_token_ms === null ? '–' : durationOf(model.first_token_ms.mean)}</td>
      <td className="number">{model.context === null ? '–' : <Count value={model.context} />}</td>
      <td className="number" title="Per million tokens">
        {price}
      </td>
    </tr>
  )
}
