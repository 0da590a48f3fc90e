// `svc` is the connection to the console: docs/guides/add-a-console-page.md
const greeting = document.querySelector('#greeting')

async function greet(name) {
  try {
    const { hello } = await svc.request('GET', '/sample-word/greeting', { query: { name } })
    greeting.textContent = `Hello ${hello}`
  } catch (error) {
    greeting.textContent = `${error.message} (${error.code})`
  }
}

document.querySelector('#ask').addEventListener('submit', event => {
  event.preventDefault()
  void greet(new FormData(event.target).get('name') || undefined)
})
