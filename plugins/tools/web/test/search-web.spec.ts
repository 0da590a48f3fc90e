import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { endpointOf } from '../src/search-web.ts'
import { openWeb, refusal, site } from './support/web.ts'

const KEY = 'canary-key-1234'
const found = {
  web: { results: [{ title: 'Tea', url: 'https://tea.example/', description: 'About tea' }, { title: 'no address' }] },
}

/** A folder with the key in a file. */
async function keyFile() {
  const folder = await mkdtemp(join(tmpdir(), 'svc-web-'))
  const path = join(folder, 'key')
  await writeFile(path, `${KEY}\n`)
  return { path, [Symbol.asyncDispose]: () => rm(folder, { recursive: true }) }
}

describe('search_web', () => {
  it('is there only where an endpoint is configured', async () => {
    await using web = await openWeb()
    expect(web.tool('search_web')).to.equal(undefined)
    expect(web.tool('fetch_page')).to.not.equal(undefined)
  })

  it('asks an endpoint as its preset says, with the key in its header, and answers what it finds', async () => {
    await using file = await keyFile()
    await using server = await site((_, response) => response.end(JSON.stringify(found)))
    const url = `${server.url}/search?q={query}&count={count}`
    await using web = await openWeb({ allow: [], search: { type: 'brave', url, api_key_file: file.path } })
    const { results, words } = await web.call('search_web', { query: 'green tea & {count}', count: 3 })
    expect(results).to.deep.equal([{ title: 'Tea', url: 'https://tea.example/', snippet: 'About tea' }])
    expect(words).to.equal('1. Tea\n   https://tea.example/\n   About tea')
    expect(server.asked[0]!.url).to.equal('/search?q=green%20tea%20%26%20%7Bcount%7D&count=3')
    expect(server.asked[0]!.headers).to.include({ 'x-subscription-token': KEY })
  })

  it('posts where that is how it is asked', async () => {
    await using file = await keyFile()
    await using server = await site((_, response) =>
      response.end(JSON.stringify({ results: [{ title: '', url: 'https://a.example/', content: 7 }] }))
    )
    await using web = await openWeb({ search: { type: 'tavily', url: server.url, api_key_file: file.path } })
    const { results } = await web.call('search_web', { query: 'say "tea"' })
    expect(results).to.deep.equal([{ title: 'https://a.example/', url: 'https://a.example/', snippet: '' }])
    expect(JSON.parse(server.asked[0]!.body)).to.deep.equal({ query: 'say "tea"', max_results: 10 })
    expect(server.asked[0]!.headers).to.include({ authorization: `Bearer ${KEY}`, 'content-type': 'application/json' })
  })

  it('asks an endpoint of one’s own, put together from the configuration', async () => {
    await using server = await site((_, response) =>
      response.end(JSON.stringify({ hits: { list: [{ t: 'T', u: 'https://u.example', s: 'S' }] } }))
    )
    const search = {
      type: 'json',
      url: `${server.url}/{query}`,
      results: 'hits.list',
      fields: { title: 't', url: 'u', snippet: 's' },
    }
    await using web = await openWeb({ search })
    expect((await web.call('search_web', { query: 'a/b' })).results).to.deep.equal([
      { title: 'T', url: 'https://u.example', snippet: 'S' },
    ])
    expect(server.asked[0]!.url).to.equal('/a%2Fb')
  })

  it('says that nothing was found', async () => {
    await using server = await site((_, response) => response.end('{"results":[]}'))
    await using web = await openWeb({ search: { type: 'searxng', url: server.url } })
    expect((await web.call('search_web', { query: 'x' })).words).to.equal('[No results.]')
    expect(server.asked[0]!.url).to.equal('/search?q=x&format=json')
  })

  it('tells what is wrong with the endpoint, and neither its address nor its key', async () => {
    await using file = await keyFile()
    const answers: Record<string, [number, string, object?]> = {
      limit: [429, 'slow down'],
      key: [401, KEY],
      html: [200, '<html>'],
      odd: [200, '{"web":{"results":"none"}}'],
      list: [200, '[]'],
      away: [302, '', { location: 'http://127.0.0.1:1/' }],
    }
    await using server = await site((request, response) => {
      const [status, body, headers = {}] = answers[new URL(request.url!, 'http://x').searchParams.get('q')!] ?? [500, '']
      response.writeHead(status, headers as Record<string, string>).end(body)
    })
    const url = `${server.url}/?q={query}`
    await using web = await openWeb({ search: { type: 'brave', url, api_key_file: file.path } })
    for (const query of Object.keys(answers)) {
      const error = await refusal(web.call('search_web', { query }))
      expect(error.code, query).to.equal('SEARCH_FAILED')
      expect(`${error.message}${error.hint}${JSON.stringify(error.details)}`).to.not.match(/canary|127\.0/)
    }
    await server.close()
    const { message } = await refusal(web.call('search_web', { query: 'x' }))
    expect(message).to.equal('the search endpoint is unreachable (CONNECTION_FAILED)')
  })

  it('fails the start where the key or the address is missing, with the hint', async () => {
    for (const [search, words] of [
      [{ type: 'brave', api_key_env: 'SVC_TEST_NO_SUCH_KEY' }, /SVC_TEST_NO_SUCH_KEY is not set/],
      [{ type: 'brave', api_key_file: '/no/such/file' }, /api_key_file cannot be read/],
      [{ type: 'brave', api_key_file: '/dev/null' }, /api_key_file is not a regular file/],
      [{ type: 'searxng' }, /search\.url is missing/],
      [{ type: 'json', url: 'ftp://a.example' }, /search\.url is missing/],
      [{ type: 'google' }, /type/],
      [{ type: 'searxng', url: 'http://a.example', key: 'x' }, /key/],
    ] as const)
      expect((await refusal(openWeb({ search }))).message).to.match(words)
  })

  it('knows where public services are', () => {
    for (const type of ['brave', 'tavily', 'serper'] as const) {
      const endpoint = endpointOf({ type }, KEY)
      expect(endpoint.urlFor('a b', 5)).to.match(/^https:\/\/[a-z.]+\/[^{}]+$/)
      expect(Object.values(endpoint.headers).join()).to.include(KEY)
    }
  })
})
