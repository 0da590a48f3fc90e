// The page has no access to the network and to the console: it asks for each request with `svc.request`.
const [form, list, none, problem] = ['#add', '#notes', '#none', '#problem'].map(name => document.querySelector(name))

/** Texts come from people: they become text, never markup. */
function entryOf({ id, text, at }) {
  const [entry, words, time, button] = ['li', 'p', 'time', 'button'].map(name => document.createElement(name))
  words.textContent = text
  time.dateTime = at
  time.textContent = new Date(at).toLocaleString(svc.context().locale)
  button.type = 'button'
  button.textContent = 'Remove'
  button.setAttribute('aria-label', `Remove the note ${text.slice(0, 40)}`)
  button.addEventListener('click', () => act(() => svc.request('DELETE', `/notes/${encodeURIComponent(id)}`)))
  entry.append(words, time, button)
  return entry
}

async function show() {
  const { notes } = await svc.request('GET', '/notes')
  list.replaceChildren(...notes.map(entryOf))
  none.hidden = notes.length > 0
}

/** Does something, then shows what is there now. Who may not change notes sees why. */
async function act(work) {
  problem.textContent = ''
  try {
    await work()
    await show()
  } catch (error) {
    problem.textContent = error.status === 403 ? 'Your scopes do not allow changes of notes.' : error.message
  }
}

form.addEventListener('submit', event => {
  event.preventDefault()
  const text = new FormData(form).get('text').trim()
  if (text === '') return
  void act(async () => {
    await svc.request('POST', '/notes', { body: { text } })
    form.reset()
  })
})

// the console loads the page anew after each of its dialogs: what was typed until then comes back
const draft = form.elements.namedItem('text')
form.addEventListener('input', () => svc.keep({ text: draft.value }))
form.addEventListener('reset', () => svc.keep(null))

void act(async () => {
  await svc.ready
  draft.value = svc.kept()?.text ?? ''
})
