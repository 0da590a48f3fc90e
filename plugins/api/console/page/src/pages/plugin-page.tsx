import { usePluginPages } from '../plugin-pages.ts'
import { PluginFrame } from '../plugin-frame.tsx'
import { pluginPage } from '../router.tsx'
import { shortName } from '../records.tsx'
import { Empty, Failure, Loading, Title } from '../states.tsx'

/** A page of a plugin: its title and plugin above the frame, where the page cannot change them. */
export function PluginPage() {
  const { name } = pluginPage.useParams()
  const { data, error, refetch } = usePluginPages()
  const page = data?.find(one => one.name === name)
  if (!page)
    return (
      <div className="page">
        <Title name="Page of a plugin">Page of a plugin</Title>
        {error ? (
          <Failure error={error} onRetry={() => void refetch()} />
        ) : data ? (
          <Empty title="There is no such page">Its plugin does not run, or your scopes do not allow the page.</Empty>
        ) : (
          <Loading rows={6} />
        )}
      </div>
    )
  return (
    <div className="frame-page">
      <div className="row spread frame-head">
        <Title name={page.title}>{page.title}</Title>
        <p className="muted small">
          A page of the plugin <code>{shortName(page.plugin)}</code>. Enter no key or token in it.
        </p>
      </div>
      <PluginFrame key={page.name} title={`${page.title}, a page of ${page.plugin}`} url={page.url} rights={page.requests} />
    </div>
  )
}
