import { gzipSync } from 'node:zlib'
import { systemContext } from '@svc/core'
import { expect } from 'chai'
import { openWeb, pages, refusal, site } from './support/web.ts'

const ARTICLE = `<!doctype html><html><head><title> A  page
  of tea </title><style>p{}</style><script>evil()</script></head><body>
<h1>Tea</h1><p>Black &amp; <b>green</b>, see <a href="../more?x=1">more</a>, <a href="javascript:evil()">not this</a>.</p>
<table><tr><th>kind</th><th>minutes</th></tr><tr><td>black</td><td>3</td></tr></table>
<pre><code class="language-js">brew(1)</code></pre><ul><li>one</li><li>two</li></ul><img alt="pic" src="data:image/png;base64,AAAA"></body></html>`

describe('fetch_page', () => {
  it('answers a page as Markdown, with its title and whole addresses', async () => {
    await using server = await pages({ '/a/b/tea': ['text/html; charset=utf-8', ARTICLE] })
    await using web = await openWeb()
    const page = await web.fetch({ url: `${server.url}/a/b/tea` })
    expect(page).to.include({ url: `${server.url}/a/b/tea`, title: 'A page of tea', content_type: 'text/html', start: 0 })
    expect(page).to.not.have.any.keys('note', 'next_start')
    expect(page.content).to.include('# Tea').and.include('**green**').and.include(`[more](${server.url}/a/more?x=1)`)
    expect(page.content).to.include('| kind | minutes |').and.include('```js\nbrew(1)\n```').and.include('two')
    expect(page.content).to.not.match(/evil|base64|p\{\}/)
    expect(page.words).to.match(/^A page of tea\nhttp.*\n\n# Tea/)
    expect((await web.fetch({ url: `${server.url}/a/b/tea`, format: 'source' })).content).to.equal(ARTICLE)
  })

  it('answers text and JSON as they are', async () => {
    await using server = await pages({
      '/t': ['text/plain', '<b>no html</b> _a_'],
      '/j': ['application/ld+json', '{"a":[1]}'],
      '/n': ['', 'plain'],
    })
    await using web = await openWeb()
    expect((await web.fetch({ url: `${server.url}/t` })).content).to.equal('<b>no html</b> _a_')
    expect((await web.fetch({ url: `${server.url}/j` })).content).to.equal('{"a":[1]}')
    expect((await web.fetch({ url: `${server.url}/n` })).content).to.equal('plain')
  })

  it('knows a page by its look where the server names no type', async () => {
    await using server = await pages({ '/': ['', '<!DOCTYPE html><title>x</title><h2>Y</h2>'] })
    await using web = await openWeb()
    expect(await web.fetch({ url: server.url })).to.include({ title: 'x', content: '## Y' })
  })

  it('comes in parts that fit together, and never cuts a character', async () => {
    const text = 'a𝕏b𝕐'.repeat(50)
    await using server = await pages({ '/': ['text/plain; charset=utf-8', text] })
    await using web = await openWeb()
    let [read, start] = ['', 0 as number | undefined]
    while (start !== undefined) {
      const part = await web.fetch({ url: server.url, start, max_characters: 7 })
      expect(part.content.isWellFormed()).to.equal(true)
      expect(part.characters).to.equal(text.length)
      read += part.content
      start = part.next_start as number | undefined
      if (start !== undefined) expect(part.note).to.include(`continue with start ${start}`)
    }
    expect(read).to.equal(text)
    expect((await web.fetch({ url: server.url, start: 1, max_characters: 1 })).content).to.equal('𝕏')
    expect((await web.fetch({ url: server.url, start: 9999 })).note).to.include('ends before character 9999')
  })

  it('reads the charset that the server, the mark or the page names; UTF-8, or else Latin, where none does', async () => {
    const latin = (words: string) => Buffer.from(words, 'latin1')
    await using server = await pages({
      '/header': ['text/html; charset="ISO-8859-1"', latin('<p>Grüße')],
      '/meta': ['text/html', Buffer.concat([Buffer.from('<meta charset=shift_jis><p>'), Buffer.from([0x93, 0xfa, 0x96, 0x7b])])],
      '/mark': ['text/plain', Buffer.from('\ufeffGrüße', 'utf16le')],
      '/none': ['text/html', '<p>Grüße'],
      '/wrong': ['text/plain; charset=no-such-thing', 'Grüße'],
      '/latin': ['text/plain', latin('Grüße')],
      '/lie': ['text/plain; charset=utf-8', latin('Grüße')],
    })
    await using web = await openWeb()
    const read = async (path: string) => (await web.fetch({ url: server.url + path })).content
    for (const path of ['/header', '/mark', '/none', '/wrong', '/latin']) expect(await read(path), path).to.equal('Grüße')
    expect(await read('/meta')).to.equal('日本')
    expect(await read('/lie')).to.equal('Gr\ufffd\ufffde')
  })

  it('refuses what is binary in words, whatever its server says of it', async () => {
    const zip = Buffer.from([0x50, 0x4b, 3, 4, 0, 0, 0])
    await using server = await pages({
      '/z': ['application/zip', zip],
      '/t': ['text/html', zip],
      '/n': ['', zip],
      '/pdf': ['application/pdf', '%PDF'],
    })
    await using web = await openWeb()
    for (const path of ['/z', '/t', '/n', '/pdf'])
      expect((await refusal(web.fetch({ url: server.url + path }))).code, path).to.equal('PAGE_BINARY')
    expect((await refusal(web.fetch({ url: `${server.url}/pdf` }))).message).to.include('application/pdf')
  })

  it('says that a page is empty', async () => {
    await using server = await pages({ '/': ['text/html', ''] })
    await using web = await openWeb()
    expect(await web.fetch({ url: server.url })).to.include({ content: '', note: 'The page is empty.' })
  })

  it('cuts a page without end, and a bomb, at its limit, and says so', async () => {
    await using server = await site((request, response) => {
      if (request.url === '/bomb')
        return response
          .writeHead(200, { 'content-type': 'text/plain', 'content-encoding': 'gzip' })
          .end(gzipSync('a'.repeat(50_000_000)))
      const more = () => {
        while (response.write('never '.repeat(1000)));
      }
      response.writeHead(200, { 'content-type': 'text/plain' }).on('drain', more)
      more()
    })
    await using web = await openWeb({ max_bytes: 5000 })
    for (const path of ['/endless', '/bomb']) {
      const page = await web.fetch({ url: server.url + path })
      expect(page.content, path).to.have.length(5000)
      expect(page.note, path).to.include('5000 bytes')
    }
  })

  it('ends with a page that is too slow', async () => {
    await using server = await site((request, response) => void (request.url === '/body' && response.write('x')))
    await using web = await openWeb({ timeout_ms: 100 })
    for (const path of ['/headers', '/body'])
      expect((await refusal(web.fetch({ url: server.url + path }))).code).to.equal('FETCH_TIMEOUT')
  })

  it('follows redirects to what may be reached alone', async () => {
    await using server = await site((request, response) => {
      const to = { '/ok': '/there', '/in': 'http://127.0.0.2/', '/meta': 'http://169.254.169.254/', '/loop': '/loop' }[
        request.url!
      ]
      if (to) response.writeHead(302, { location: to }).end()
      else response.setHeader('content-type', 'text/plain').end('there')
    })
    await using web = await openWeb()
    expect(await web.fetch({ url: `${server.url}/ok` })).to.include({ content: 'there', url: `${server.url}/there` })
    const codes: unknown[] = []
    for (const path of ['/in', '/meta', '/loop']) codes.push((await refusal(web.fetch({ url: server.url + path }))).code)
    expect(codes).to.deep.equal(['ADDRESS_FORBIDDEN', 'ADDRESS_FORBIDDEN', 'REDIRECT_REFUSED'])
  })

  it('refuses the loopback where no configuration allows it', async () => {
    await using server = await pages({ '/': ['text/plain', 'secret'] })
    await using web = await openWeb({ allow: [] })
    expect((await refusal(web.fetch({ url: server.url }))).code).to.equal('ADDRESS_FORBIDDEN')
    expect(server.asked).to.deep.equal([])
  })

  it('says of HTML that nothing can convert that it cannot, and still answers its source', async () => {
    const deep = '<div>'.repeat(200_000)
    await using server = await pages({ '/': ['text/html', deep] })
    await using web = await openWeb({ convert_timeout_ms: 500 })
    const { code, hint } = await refusal(web.fetch({ url: server.url }))
    expect({ code, hint }).to.deep.equal({ code: 'PAGE_UNREADABLE', hint: 'Request the page with format "source"' })
    expect((await web.fetch({ url: server.url, format: 'source' })).characters).to.equal(deep.length)
  })

  it('stops the conversion with its caller', async () => {
    await using server = await pages({ '/': ['text/html', '<div>'.repeat(200_000)] })
    await using web = await openWeb({ convert_timeout_ms: 60_000 })
    const controller = new AbortController()
    server.server.on('request', (_, response) =>
      response.on('close', () => setImmediate(() => controller.abort(new Error('enough'))))
    )
    expect((await refusal(web.call('fetch_page', { url: server.url }, systemContext(controller.signal)))).message).to.equal(
      'enough'
    )
  })
})
