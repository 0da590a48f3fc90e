import { PluginNote, PluginPart } from '../plugin-part.tsx'
import { titleOf, usePluginPages } from '../plugin-pages.ts'
import { pluginPage } from '../router.tsx'
import { Empty, Failure, Loading, Title } from '../states.tsx'

/** A page of a plugin: its title and plugin above it, where the page cannot change them. */
export function PluginPage() {
  const { name } = pluginPage.useParams()
  const { data, error, refetch } = usePluginPages()
  const page = data?.find(one => one.name === name && one.place === 'page')
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
  const head = (
    <>
      <Title name={titleOf(page)}>{titleOf(page)}</Title>
      <PluginNote page={page} />
    </>
  )
  if (page.url === null)
    return (
      <div className="page">
        <div className="row spread">{head}</div>
        <PluginPart key={page.name} page={page} />
      </div>
    )
  return (
    <div className="frame-page">
      <div className="row spread frame-head">{head}</div>
      <PluginPart key={page.name} page={page} />
    </div>
  )
}
