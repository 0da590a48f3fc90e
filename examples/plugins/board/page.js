/** @typedef {import('./items.js').Items} Items */

const ESCAPES = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' }
/** Names and questions come from people and models: everything inserted is escaped. */
const escape = (/** @type {unknown} */ value) =>
  String(value).replace(/[&<>"']/g, sign => ESCAPES[/** @type {keyof typeof ESCAPES} */ (sign)])

/**
 * The start of a page. A browser runs no script of an isolated plugin, so the live page is one response that goes on: it repeats
 * `main`, and the style shows only the last one. The warning appears when no further `main` replaces it in time.
 *
 * @type {(seconds: number) => string}
 */
export const renderHead = seconds => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Board</title>
<style>
body { font: 1rem/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 70rem; padding: 0 1rem }
main:has(~ main) { display: none }
table { border-collapse: collapse; width: 100% }
th, td { border-bottom: 1px solid #ccc; overflow-wrap: anywhere; padding: .25rem .5rem; text-align: left }
.late { animation: late 0s ${seconds * 3}s forwards; visibility: hidden }
@keyframes late { to { visibility: visible } }
</style>
</head>
<body>
<h1>Board</h1>
<p><a href="/board">Now</a> · <a href="/board/live">Live</a></p>
`

/** @type {(items: Items, time: Date, isLive: boolean) => string} */
export const renderItems = ({ conversations, runs }, time, isLive) => `<main>
<p>Updated ${time.toISOString()}${isLive ? ' <strong class="late">No longer live: load the page again</strong>' : ''}</p>
${renderTable('Runs', ['Workflow', 'Status', 'Progress', 'Waits for', 'Updated'], runs.map(runCells))}
${renderTable('Conversations', ['Conversation', 'Owner', 'Messages', 'Updated'], conversations.map(conversationCells))}
</main>
`

/** @type {(title: string, heads: string[], rows: string[][]) => string} */
const renderTable = (title, heads, rows) => `<h2>${title}</h2>
<table>
<thead><tr>${heads.map(head => `<th scope="col">${head}</th>`).join('')}</tr></thead>
<tbody>
${rows.map(cells => `<tr>${cells.map(cell => `<td>${escape(cell)}</td>`).join('')}</tr>`).join('\n')}
</tbody>
</table>`

/** @type {(run: Items['runs'][number]) => string[]} */
const runCells = run => [
  run.workflow,
  run.status,
  `${Math.round(run.progress * 100)} %`,
  run.waiting_for.join(', '),
  run.updated_at,
]

/** @type {(conversation: Items['conversations'][number]) => string[]} */
const conversationCells = ({ id, owner, messages, updated_at }) => [id, owner, String(messages), updated_at]
