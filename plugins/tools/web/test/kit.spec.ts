import { toolKit } from '@svc/testing'
import { openWeb, site } from './support/web.ts'

const PAGES: Readonly<Record<string, [number, Record<string, string>]>> = {
  '/': [200, { 'content-type': 'text/html' }],
  '/picture': [200, { 'content-type': 'image/png' }],
  '/inside': [302, { location: 'http://[::1]/' }],
}
const server = await site((request, response) => {
  if (request.url === '/slow') return
  if (request.url?.startsWith('/search'))
    return response.end(JSON.stringify({ results: [{ title: 'T', url: 'https://a.example/' }] }))
  const [status, headers] = PAGES[request.url!] ?? [404, {}]
  response.writeHead(status, headers).end('<title>T</title><p>Hello')
})
server.server.unref()
const at = (path: string) => `${server.url}${path}`

describe('fetch_page, by the tool kit', () => {
  const open = async () => {
    const web = await openWeb()
    return { name: 'fetch_page', tool: web.tool('fetch_page')!, close: web.close }
  }
  const cases = toolKit(open, {
    good: [{ args: { url: at('/') } }, { args: { url: at('/'), start: 2, max_characters: 2, format: 'source' } }],
    bad: [
      { args: { url: at('/missing') }, message: /404 \(Not Found\)/ },
      { args: { url: at('/picture') }, message: /image\/png/ },
      { args: { url: at('/inside') }, message: /does not connect to/ },
      { args: { url: 'http://169.254.169.254/latest/meta-data' }, message: /does not connect to/ },
      { args: { url: 'http://2130706434/' }, message: /does not connect to/ },
      { args: { url: 'file:///etc/passwd' }, message: /scheme file/ },
      { args: { url: 'http://user:secret@127.0.0.1/' }, message: /user name or password/ },
      { args: { url: 'no url' }, message: /not valid/ },
      { args: { url: 'http://127.0.0.1:1/' }, message: /cannot be reached/ },
      { args: { url: '' } },
      { args: { url: at('/'), start: -1 } },
      { args: {} },
    ],
    slow: { args: { url: at('/slow') } },
  })
  for (const testCase of cases) if (testCase.skipped === undefined) it(testCase.title, testCase.run)
})

describe('search_web, by the tool kit', () => {
  const open = async () => {
    const web = await openWeb({ allow: [], search: { type: 'searxng', url: server.url } })
    return { name: 'search_web', tool: web.tool('search_web')!, close: web.close }
  }
  const cases = toolKit(open, {
    good: [{ args: { query: 'tea' } }, { args: { query: 'tea & "milk"', count: 1 } }],
    bad: [{ args: { query: ' ' } }, { args: { query: 'a', count: 0 } }, { args: {} }],
  })
  for (const testCase of cases) if (testCase.skipped === undefined) it(testCase.title, testCase.run)
})
