// The server's routes, asked with the token that this tab was given.

const KEY = 'paddock-token'

/** An answer that is a problem document, or none at all. */
export class Refused extends Error {
  /** @param {number} status 0 where there was no answer */
  constructor(status, detail) {
    super(detail)
    this.status = status
  }
}

/** @returns {Promise<any>} the JSON of a 2xx answer; throws Refused for every other end */
export async function get(path, signal) {
  const token = sessionStorage.getItem(KEY)
  const headers = token === null ? {} : { authorization: `Bearer ${token}` }
  let response
  try {
    response = await fetch(path, { headers, signal })
  } catch (error) {
    if (signal?.aborted) throw error
    throw new Refused(0, 'The server does not answer.')
  }
  if (response.ok) return response.json()
  const problem = await response.json().catch(() => ({}))
  throw new Refused(response.status, problem.detail ?? `${response.status} ${response.statusText}`)
}

export const hasToken = () => sessionStorage.getItem(KEY) !== null
export const keepToken = (token) => sessionStorage.setItem(KEY, token)
export const forgetToken = () => sessionStorage.removeItem(KEY)
