import { deepEqual, equal } from 'node:assert/strict'
import { test } from 'node:test'
import { renderItems } from '../page.js'

// `svc plugins test` runs the kit. It starts the plugins of svc that provide the services; a test here would have to bring them.

test('shows what people and models wrote as text', () => {
  const markup = `<script>alert('1')</script>`
  const run = { id: 'run', workflow: 'x"&', status: 'running', progress: 0.5, waiting_for: [markup], updated_at: 'now' }
  const conversation = { id: 'talk', owner: markup, messages: 2, updated_at: 'now' }
  const page = renderItems({ runs: [run], conversations: [conversation] }, new Date(0), false)
  const shown = '&lt;script&gt;alert(&#39;1&#39;)&lt;/script&gt;'
  const cells = [...page.matchAll(/<td>(.*?)<\/td>/g)].map(([, cell]) => cell)
  deepEqual(cells, ['x&quot;&amp;', 'running', '50 %', shown, 'now', 'talk', shown, '2', 'now'])
  equal(page.includes('<script'), false)
})
